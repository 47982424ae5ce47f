// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var emptinessCase = Case{
	Name:  "emptiness",
	About: "an empty machine goes after consolidateAfter; a pod that arrives at any step of it stops that or binds elsewhere",
	Run:   runEmptiness,
}

const consolidateAfter = 6 * time.Second

func runEmptiness(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.Buyable(ctx, change{"spec.disruption.consolidateAfter", consolidateAfter.String()}); err != nil {
		return err
	}
	if err := t.Create(ctx, t.Pod("visitor", "visitor-0", "1")); err != nil {
		return err
	}
	if err := t.WaitBound(ctx, "visitor", 1, time.Minute); err != nil {
		return err
	}
	stayed := claimUIDs(t.Judge.View())
	for i, step := range []struct {
		when string
		wait func(context.Context) error
	}{
		{"before consolidateAfter has passed", func(context.Context) error { time.Sleep(consolidateAfter / 2); return nil }},
		{"when it is tainted", t.waitClosing},
		{"when its NodeClaim is being deleted", t.waitDeleting},
	} {
		if err := t.Delete(ctx, fmt.Sprintf("visitor-%d", i)); err != nil {
			return err
		}
		if err := step.wait(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.when, err)
		}
		if err := t.Create(ctx, t.Pod("visitor", fmt.Sprintf("visitor-%d", i+1), "1")); err != nil {
			return err
		}
		if err := t.WaitBound(ctx, "visitor", 1, time.Minute); err != nil {
			return fmt.Errorf("a pod arrived %s: %w", step.when, err)
		}
		if now := claimUIDs(t.Judge.View()); i == 0 && fmt.Sprint(now) != fmt.Sprint(stayed) {
			return fmt.Errorf("a pod arrived %s, and the NodeClaims are %v, they were %v", step.when, now, stayed)
		}
	}
	if err := t.Delete(ctx, "visitor-3"); err != nil {
		return err
	}
	if err := t.WaitGone(ctx, "machine", MachinesGone, time.Minute); err != nil {
		return err
	}
	return t.savingLogged()
}

// waitClosing waits until a node is tainted for its removal.
func (t *Trial) waitClosing(ctx context.Context) error {
	return t.Wait(ctx, time.Minute, func(v *judge.View) string {
		for _, node := range v.Nodes {
			for _, taint := range node.Spec.Taints {
				if taint.Key == "karpenter.sh/disrupted" {
					return ""
				}
			}
		}
		return "no node is tainted for removal"
	})
}

// waitDeleting waits until a NodeClaim is being deleted.
func (t *Trial) waitDeleting(ctx context.Context) error {
	return t.Wait(ctx, time.Minute, func(v *judge.View) string {
		for _, claim := range v.Claims {
			if claim.DeletionTimestamp != nil {
				return ""
			}
		}
		return "no NodeClaim is being deleted"
	})
}

// savingLogged wants the line that says what a removal saves.
func (t *Trial) savingLogged() error {
	log, err := readLog(t.Product.Process)
	if err != nil {
		return err
	}
	if !strings.Contains(log, "saves $") {
		return fmt.Errorf("%s does not say what the removal saves per hour", t.Product.LogPath())
	}
	return nil
}
