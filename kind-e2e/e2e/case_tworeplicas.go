// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var twoReplicasCase = Case{
	Name:  "two-replicas",
	About: "the leader is stopped for 30 s in the middle of launches and goes on: it changes nothing after its successor's first call",
	Run:   runTwoReplicas,
}

func runTwoReplicas(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	leader := t.Product
	first, err := t.waitLease(ctx, "")
	if err != nil {
		return err
	}
	if err := t.Start(ctx); err != nil {
		return err
	}
	successor := t.Product
	if err := t.Judge.SetRules(judge.Rules{Replicas: []judge.Replica{replica("first", leader), replica("second", successor)}}); err != nil {
		return err
	}
	if err := t.Buyable(ctx); err != nil {
		return err
	}
	if err := t.waitBuyable(ctx); err != nil {
		return err
	}
	// The leader stops while its launches are on their way, with more pods to come.
	if _, err := t.Fake.Fault(ctx, map[string]any{"action": "CreateFleet", "delay": "2s"}); err != nil {
		return err
	}
	pods := t.Series("alone", 8, "1", alone)
	if err := t.Create(ctx, pods[:4]...); err != nil {
		return err
	}
	if err := t.Wait(ctx, settleTimeout, func(v *judge.View) string { return fleetsMissing(v, 1) }); err != nil {
		return err
	}
	if err := t.stopFor(ctx, leader, 30*time.Second, func() error { return t.Create(ctx, pods[4:]...) }); err != nil {
		return err
	}
	second, err := t.waitLease(ctx, first)
	if err != nil {
		return err
	}
	t.Say("    leadership went from %s to %s", first, second)
	if err := t.WaitBound(ctx, "alone", len(pods), 90*time.Second); err != nil {
		return err
	}
	return t.addAudit()
}

// replica is how the judge tells a replica by its calls.
func replica(name string, p *Product) judge.Replica {
	return judge.Replica{Name: name, AccessKey: p.AccessKey, CredentialID: p.CredentialID}
}

// stopFor has the process stand still for a while, during which something happens.
func (t *Trial) stopFor(ctx context.Context, p *Product, during time.Duration, meanwhile func() error) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	err := meanwhile()
	select {
	case <-ctx.Done():
	case <-time.After(during):
	}
	if err := p.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	return err
}

// waitLease waits until a replica other than that leads, and returns who.
func (t *Trial) waitLease(ctx context.Context, other string) (holder string, err error) {
	err = poll(ctx, settleTimeout, func(ctx context.Context) (string, error) {
		lease, err := t.Kube.CoordinationV1().Leases(productNamespace).Get(ctx, "jit-scheduler", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "nobody leads", nil
		}
		if err != nil {
			return "", err
		}
		if lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		if holder == "" || holder == other {
			return fmt.Sprintf("%q leads", holder), nil
		}
		return "", nil
	})
	return holder, err
}

// addAudit gives the judge the API server's audit log.
func (t *Trial) addAudit() error {
	log, err := os.Open(t.Cluster.AuditLog)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	return t.Judge.AddAudit(log)
}
