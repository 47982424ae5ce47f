// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// KarpenterLease is what Karpenter's controllers elect their leader by, in the namespace they were installed in.
	KarpenterLease = "karpenter-leader-election"

	// karpenterLeaseTime is Karpenter's, for a lease that does not say how long it is good for.
	karpenterLeaseTime = 15 * time.Second
	// clockSkew is how wrong clocks may be before a lease that was found lapsed is believed to be so at once.
	clockSkew = 30 * time.Second
)

// karpenter knows whether a Karpenter leads in this cluster: two of a kind would delete each other's launch templates
// and machines. As in leader election, a holder is alive as long as it is seen renewing; clocks are not compared.
type karpenter struct {
	mu sync.Mutex
	// listed: the leases are known; until then err is why not.
	listed bool
	err    error
	leases map[string]*karpenterLease // by namespace
	// changed is closed, and replaced, when blocks may answer another way.
	changed chan struct{}
}

type karpenterLease struct {
	holder  string
	renewed metav1.MicroTime
	alive   bool
	// until is when it lapses unless it is renewed before.
	until time.Time
}

func newKarpenter() *karpenter {
	return &karpenter{leases: map[string]*karpenterLease{}, changed: make(chan struct{})}
}

// blocks is nil if no Karpenter leads, for certain; otherwise it says in words for users who does, and what to do.
func (k *karpenter) blocks() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, namespace := range slices.Sorted(maps.Keys(k.leases)) {
		if l := k.leases[namespace]; l.alive {
			return fmt.Errorf("a Karpenter is running: %[1]s holds the lease %[2]s/%[3]s; nothing is launched or removed here until it stops "+
				"(kubectl -n %[2]s scale deployment/karpenter --replicas=0)", l.holder, namespace, KarpenterLease)
		}
	}
	switch {
	case k.listed:
		return nil
	case k.err != nil:
		return fmt.Errorf("not known whether Karpenter is running: reading its lease %s: %w", KarpenterLease, k.err)
	}
	return errors.New("not known yet whether Karpenter is running")
}

// known says whether blocks' answer is more than a guess.
func (k *karpenter) known() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.listed
}

// free and blocked are what await waits for.
func (k *karpenter) free() bool    { return k.blocks() == nil }
func (k *karpenter) blocked() bool { return k.blocks() != nil }

// await returns when the condition holds; false if ctx ended before.
func (k *karpenter) await(ctx context.Context, condition func() bool) bool {
	for {
		k.mu.Lock()
		changed := k.changed
		k.mu.Unlock()
		if condition() {
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// update changes what is known and wakes those who wait for it.
func (k *karpenter) update(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
	close(k.changed)
	k.changed = make(chan struct{})
}

// saw notes a lease as it is now. One that is new here counts as held until it is seen not to be renewed, but for one
// that lapsed long before we looked.
func (k *karpenter) saw(lease *coordinationv1.Lease) {
	now, valid := time.Now(), karpenterLeaseTime
	if s := lease.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		valid = time.Duration(*s) * time.Second
	}
	next := &karpenterLease{until: now.Add(valid), alive: true}
	if h := lease.Spec.HolderIdentity; h != nil {
		next.holder = *h
	}
	if t := lease.Spec.RenewTime; t != nil {
		next.renewed = *t
	}
	k.update(func() {
		was := k.leases[lease.Namespace]
		switch {
		case next.holder == "": // given back
			next.alive = false
		case was != nil && was.holder == next.holder && was.renewed.Equal(&next.renewed):
			return
		case was == nil && now.Sub(next.renewed.Time) > valid+clockSkew:
			next.alive = false
		}
		k.leases[lease.Namespace] = next
	})
}

func (k *karpenter) gone(namespace string) {
	k.update(func() { delete(k.leases, namespace) })
}

// due is the namespace of the lease that lapses first, and when.
func (k *karpenter) due() (namespace string, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for ns, l := range k.leases {
		if l.alive && (namespace == "" || l.until.Before(at)) {
			namespace, at = ns, l.until
		}
	}
	return namespace, at
}

// watch keeps what is known true until ctx ends.
func (k *karpenter) watch(ctx context.Context, client kubernetes.Interface) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", KarpenterLease).String()
	}))
	informer := factory.Coordination().V1().Leases().Informer()
	seen := func(o any) {
		if lease, ok := o.(*coordinationv1.Lease); ok && lease.Name == KarpenterLease {
			k.saw(lease)
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    seen,
		UpdateFunc: func(_, o any) { seen(o) },
		DeleteFunc: func(o any) {
			if lease, ok := deleted[*coordinationv1.Lease](o); ok && lease.Name == KarpenterLease {
				k.gone(lease.Namespace)
			}
		},
	})
	if err == nil {
		err = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
			klog.FromContext(ctx).V(2).Info("Watching Karpenter's lease", "err", err)
			k.update(func() { k.err = err })
		})
	}
	if err != nil {
		k.update(func() { k.err = err })
		return
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return
	}
	k.update(func() { k.listed = true })
	k.expire(ctx, client)
}

// expire ends leases that are not renewed. A watch may have stalled: each is read once more before.
func (k *karpenter) expire(ctx context.Context, client kubernetes.Interface) {
	for {
		k.mu.Lock()
		changed := k.changed
		k.mu.Unlock()
		namespace, at := k.due()
		var lapsed <-chan time.Time
		timer := time.NewTimer(max(0, time.Until(at)))
		if namespace != "" {
			lapsed = timer.C
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-changed:
		case <-lapsed:
			k.confirm(ctx, client, namespace)
		}
		timer.Stop()
	}
}

// confirm reads a lease that seems to have lapsed. Without an answer it counts as held.
func (k *karpenter) confirm(ctx context.Context, client kubernetes.Interface, namespace string) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, KarpenterLease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		k.gone(namespace)
		return
	case err != nil:
		klog.FromContext(ctx).Error(err, "Reading Karpenter's lease", "namespace", namespace)
		k.update(func() {
			if l := k.leases[namespace]; l != nil {
				l.until = time.Now().Add(time.Second)
			}
		})
		return
	}
	k.saw(lease)
	k.update(func() {
		if l := k.leases[namespace]; l != nil && !time.Now().Before(l.until) {
			l.alive = false
		}
	})
}
