// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

// Trial is one run of one case.
type Trial struct {
	*Env
	Name string
	// Namespace is the case's own.
	Namespace string
	// Product is the replica that was started last, nil before the first.
	Product *Product

	replicas []*Product
	tidy     []func(context.Context) error
}

// caseNamespace marks the namespaces of cases.
const caseNamespace = "e2e.jit-scheduler.io/case"

// settleTimeout bounds what takes milliseconds on an idle machine: it only has to tell slow from never.
const settleTimeout = 30 * time.Second

// begin makes the case's namespace, AWS account and judge.
func (e *Env) begin(ctx context.Context, c Case) (*Trial, error) {
	t := &Trial{Env: e, Name: c.Name, Namespace: "e2e-" + c.Name}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.Namespace, Labels: map[string]string{caseNamespace: c.Name}}}
	if _, err := e.Kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	// Pods are refused until the namespace has its ServiceAccount.
	err := poll(ctx, settleTimeout, func(ctx context.Context) (string, error) {
		_, err := e.Kube.CoreV1().ServiceAccounts(t.Namespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "no default ServiceAccount in " + t.Namespace, nil
		}
		return "", err
	})
	if err != nil {
		return nil, err
	}
	return t, e.watch(ctx, "fakeaws-"+c.Name, Options{SchedulerName: productScheduler, Rules: c.Rules})
}

// Start starts a replica of the product, whose log is called after the case.
func (t *Trial) Start(ctx context.Context, args ...string) error {
	p, err := t.StartProduct(ctx, t.replicaName(), args...)
	if err != nil {
		return err
	}
	t.Product, t.replicas = p, append(t.replicas, p)
	return nil
}

// replicaName is what the next replica is called.
func (t *Trial) replicaName() string {
	if n := len(t.replicas); n > 0 {
		return fmt.Sprintf("jit-%s-%d", t.Name, n+1)
	}
	return "jit-" + t.Name
}

// Kill ends the replica as kill -9 does, and its lease as its expiry would: what a successor finds is the same, 15 s
// sooner.
func (t *Trial) Kill(ctx context.Context) error {
	return errors.Join(t.Product.Kill(), t.dropLease(ctx))
}

// Cleanup has do run after the case, last first.
func (t *Trial) Cleanup(do func(context.Context) error) { t.tidy = append(t.tidy, do) }

// Wait waits until lacking returns "": it says what is still missing, for the error of a wait in vain.
func (t *Trial) Wait(ctx context.Context, within time.Duration, lacking func(*judge.View) string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	last := ""
	err := t.Judge.WaitFor(ctx, func(v *judge.View) bool {
		last = lacking(v)
		return last == ""
	})
	if err != nil {
		return fmt.Errorf("after %s: %s: %w", within, last, err)
	}
	return nil
}

// WaitBound waits until the namespace's pods with that label are n and all bound.
func (t *Trial) WaitBound(ctx context.Context, app string, n int, within time.Duration) error {
	sel := t.App(app)
	return t.Wait(ctx, within, func(v *judge.View) string {
		if c := v.Count(sel); c.Bound != n || c.Total != n {
			return fmt.Sprintf("%d of %d pods %q are bound, wanted %d", c.Bound, c.Total, app, n)
		}
		return ""
	})
}

// App selects the pods of this case with that app label.
func (t *Trial) App(app string) judge.PodSelector {
	return judge.PodSelector{Namespace: t.Namespace, Labels: map[string]string{"app": app}}
}

// Stays holds for that long, or returns what happened: broken says what must not be.
func (t *Trial) Stays(ctx context.Context, during time.Duration, broken func(*judge.View) string) error {
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	what := ""
	if err := t.Judge.WaitFor(ctx, func(v *judge.View) bool { what = broken(v); return what != "" }); err == nil {
		return errors.New(what)
	}
	return nil
}

// nothingLaunched says what was bought, if anything was.
func nothingLaunched(v *judge.View) string {
	switch {
	case len(v.Claims) > 0:
		return fmt.Sprintf("%d NodeClaims, wanted none", len(v.Claims))
	case len(v.Instances) > 0:
		return fmt.Sprintf("%d instances, wanted none", len(v.Instances))
	case fleetCalls(v) > 0:
		return fmt.Sprintf("%d CreateFleet calls, wanted none", fleetCalls(v))
	}
	return ""
}

// fleetCalls counts launches, without the dry runs by which permissions are checked.
func fleetCalls(v *judge.View) int {
	n := 0
	for i := range v.Calls {
		if v.Calls[i].Action == "CreateFleet" && !v.Calls[i].DryRun {
			n++
		}
	}
	return n
}

// claimUIDs are the NodeClaims that exist, as name/uid, sorted.
func claimUIDs(v *judge.View) []string {
	var all []string
	for name, c := range v.Claims {
		all = append(all, name+"/"+string(c.UID))
	}
	slices.Sort(all)
	return all
}

// poll asks until there is nothing lacking.
func poll(ctx context.Context, within time.Duration, lacking func(context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		what, err := lacking(ctx)
		if err == nil && what == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("after %s: %s", within, strings.TrimSpace(what)), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
