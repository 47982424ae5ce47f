// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/allocatable"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// Options wire a Provisioner. All fields but Leading are required.
type Options struct {
	// Client and Dynamic are the provisioner's own: its writes must not queue behind the scheduler's.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Informers are the scheduler's; New adds what it needs before they start.
	Informers informers.SharedInformerFactory
	Cloud     cloudprovider.Interface
	// ClusterName is part of every instance's tags.
	ClusterName string
	Recorder    events.EventRecorder
	// SchedulerNames are the profiles with the plugin: other pods are nobody's business here.
	SchedulerNames []string
	// Leading returns an error unless the lease is known to be ours right now (monotonic clock). It is asked
	// right before each mutating call. nil: always leading. New adds that no Karpenter may lead.
	Leading func() error
}

// Provisioner is the one owner of claims and reservations. mu guards every field below it; it is held while a plan
// is made, never across I/O.
type Provisioner struct {
	Options
	sched Scheduler
	pods  cache.SharedIndexInformer
	gates atomic.Pointer[map[string]Gate]
	ready readiness
	// leads is Options.Leading as it was given; karpenter says whether we may act although it is ours.
	leads     func() error
	karpenter *karpenter
	// term are the goroutines, and crds the informers, of the time between two Karpenters. Only alternate uses them.
	term sync.WaitGroup
	crds dynamicinformer.DynamicSharedInformerFactory
	// slots bound the calls in flight.
	slots slots
	// hints carries best-effort pod status patches.
	hints hints

	mu       sync.Mutex
	led      bool            // Lead was called
	ctx      context.Context // ends with leadership, or when a Karpenter comes; nil while we do not provision
	state    *lifecycle.State
	pools    map[string]*poolState
	classes  map[string]*classState
	waiting  map[types.UID]*waitingPod
	expected map[types.UID]*expectation
	// standIns are the expected pods that have a place, by their made-up UIDs.
	standIns map[types.UID]*v1.Pod
	// failures keeps why a claim was given up, for launchWait.
	failures map[string]string
	serial   int
	// foreign are the machines, by provider id, of NodeClaims that are not ours.
	foreign map[string]string
	// measured is what machines turned out to have; sized, by class, the types as they are with that.
	measured *allocatable.Book
	sized    map[string]*sizedTypes
	extended map[string]*extendedTypes // by pool
	// others are NodeClaims, by name and UID, that are not ours; undecided are those whose NodePool is not known yet,
	// deciding the pools that the API server is asked for.
	others    map[string]types.UID
	undecided map[string]*karpv1.NodeClaim
	deciding  map[string]bool
	// epoch grows with every change that can turn a refusal into a purchase.
	epoch    uint64
	wake     chan struct{}
	synced   bool
	offering bool
	// offerTook is how long the last offer of room took.
	offerTook time.Duration
}

// New makes a Provisioner that does nothing until Lead. It registers informers and handlers, so it must be called
// before the factory is started.
func New(o Options) (*Provisioner, error) {
	if o.ClusterName == "" {
		return nil, errors.New("clusterName: Required value")
	}
	if o.Leading == nil {
		o.Leading = func() error { return nil }
	}
	p := &Provisioner{
		Options:  o,
		state:    lifecycle.New(lifecycle.Config{}),
		pools:    map[string]*poolState{},
		classes:  map[string]*classState{},
		waiting:  map[types.UID]*waitingPod{},
		expected: map[types.UID]*expectation{},
		standIns: map[types.UID]*v1.Pod{},
		failures: map[string]string{},
		foreign:  map[string]string{},
		measured: allocatable.New(),
		extended: map[string]*extendedTypes{},
		sized:    map[string]*sizedTypes{},

		others:    map[string]types.UID{},
		undecided: map[string]*karpv1.NodeClaim{},
		deciding:  map[string]bool{},

		wake:  make(chan struct{}, 1),
		slots: newSlots(),

		leads:     o.Leading,
		karpenter: newKarpenter(),
	}
	p.Leading = p.mayAct
	p.gates.Store(&map[string]Gate{})
	p.hints.init()
	return p, p.watchCore()
}

// SetScheduler connects the scheduler; it must happen before Lead.
func (p *Provisioner) SetScheduler(s Scheduler) { p.sched = s }

// Reservation is the ledger's answer for a pod. A pod that was expected takes the place kept for it.
func (p *Provisioner) Reservation(pod *v1.Pod) Reservation {
	p.mu.Lock()
	defer p.mu.Unlock()
	claim, node := p.state.Reservation(pod.UID)
	if claim == "" && node == "" {
		claim, node = p.claimExpected(pod)
	}
	if claim != "" {
		p.hints.nominate(pod, claim)
	}
	return Reservation{NodeClaim: claim, Node: node}
}

// Gates are the nodes that are closed, and those whose hold is over though their object still carries it.
func (p *Provisioner) Gates() map[string]Gate { return *p.gates.Load() }

// Reserved says that a cycle chose node for the pod.
func (p *Provisioner) Reserved(pod *v1.Pod, node string) {
	p.apply(lifecycle.PodReserved{UID: pod.UID, Node: node})
}

// Unreserved says that the choice failed later: the pod is in the queue again.
func (p *Provisioner) Unreserved(pod *v1.Pod) { p.apply(lifecycle.PodUnreserved{UID: pod.UID}) }

// Misfit says that a pod failed its cycle on the node it was paired with: it is planned again.
func (p *Provisioner) Misfit(pod *v1.Pod) { p.apply(lifecycle.PodMisfit{UID: pod.UID}) }

// apply takes events in order and carries out what is due.
func (p *Provisioner) apply(evs ...lifecycle.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.applyLocked(evs...)
}

func (p *Provisioner) applyLocked(evs ...lifecycle.Event) {
	if p.ctx == nil || p.ctx.Err() != nil {
		return // not leading: the state is rebuilt by Lead
	}
	for _, ev := range evs {
		p.carryOut(p.state.Apply(time.Now(), ev))
	}
	gates := p.state.Gates()
	p.gates.Store(&gates)
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run is the event loop's clock: it ticks the state at its next deadline and wakes pods that were refused once
// something has changed.
func (p *Provisioner) run(ctx context.Context) {
	retry := time.NewTicker(refusedRetry)
	defer retry.Stop()
	var seen uint64
	for {
		p.mu.Lock()
		next, ok := p.state.NextDeadline()
		changed := p.epoch != seen
		seen = p.epoch
		p.mu.Unlock()
		if changed {
			p.wakeWaiting(false)
		}
		delay := time.Minute
		if ok {
			delay = max(time.Until(next), time.Millisecond)
		}
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-retry.C:
			p.expire()
			p.wakeWaiting(true)
		case <-p.wake:
		case <-timer.C:
			p.apply(lifecycle.Tick{})
		}
		timer.Stop()
	}
}

// refusedRetry is how often refused pods are tried again without a known change: offerings that were out of
// capacity come back in silence.
const refusedRetry = 30 * time.Second

func (p *Provisioner) logger() klog.Logger {
	if p.ctx == nil {
		return klog.Background()
	}
	return klog.FromContext(p.ctx)
}
