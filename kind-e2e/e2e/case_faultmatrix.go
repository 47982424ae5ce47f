// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var faultMatrixCase = Case{
	Name:  "fault-matrix",
	About: "everything that AWS and machines do wrong, one NodePool each: what the user sees, what is left behind (nothing), how it recovers",
	Rules: judge.Rules{WantNothingLeft: true, AllowUnlaunched: true, AllowSwept: true, Skip: map[string]string{
		"claim-never-used": "machines that never come, or are not what they should be, are what it is about",
	}},
	Run: runFaultMatrix,
}

// faultRow is one fault, which a NodePool of its own suffers.
type faultRow struct {
	// name is that of the NodePool, of the pods and, if it has its own, of the EC2NodeClass.
	name string
	// fault in words.
	fault string
	// types are the pool's own: what EC2 refuses to one pool is remembered for all.
	types []string
	// capacity types and zones of the pool; on-demand and the first two zones if empty, as the third has a full subnet.
	capacity, zones []string
	// class, if not nil, are the changes of an EC2NodeClass of its own.
	class []change
	// rule of the fake. Where it names no tags or parameters, it is about this pool's machines and templates.
	rule map[string]any
	// saw are parts of one line that the user must be able to read on the pod, NodeClaim, NodePool or EC2NodeClass; nil
	// if the pods are bound and there is nothing to tell.
	saw []string
	// fix is what ends the fault, and fixed says so; nil if it passes by itself.
	fix   func(context.Context, *Trial, *faultRow) error
	fixed string
	// launched is how many machines may be launched in all; 1 if 0.
	launched int
	// phase is when the row runs: what some cause is remembered for all pools, so they start when the others are done. A
	// new replica, which remembers nothing, begins phaseForgets.
	phase int
	// within is how long recovery may take; faultRecovers if 0.
	within time.Duration
}

// faultResult is one line of the table.
type faultResult struct {
	saw, left, recovered string
	err                  error
}

var errNeverFired = errors.New("it never happened")

const (
	faultPhases   = 4
	phaseForgets  = 2
	allPhases     = -1               // rows that take long run beside the others
	faultShows    = 40 * time.Second // until the user can read of it
	faultRecovers = 75 * time.Second // from then, or from the fix, until the pods are bound
	faultGoes     = 60 * time.Second // until machines and NodeClaims are gone after the pods
)

func runFaultMatrix(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.NodeClass(ctx, "default"); err != nil {
		return err
	}
	var mu sync.Mutex
	results := map[string]faultResult{}
	start := func(wg *sync.WaitGroup, phase int) {
		for i := range faultRows {
			if row := &faultRows[i]; row.phase == phase {
				wg.Go(func() {
					result := t.suffer(ctx, row)
					mu.Lock()
					defer mu.Unlock()
					results[row.name] = result
				})
			}
		}
	}
	var long sync.WaitGroup
	start(&long, allPhases)
	for phase := range faultPhases {
		if phase == phaseForgets {
			if err := errors.Join(t.Kill(ctx), t.Start(ctx)); err != nil {
				return err
			}
		}
		var wg sync.WaitGroup
		start(&wg, phase)
		wg.Wait()
	}
	long.Wait()
	err := t.printFaults(results)
	for i := range faultRows {
		err = errors.Join(err, results[faultRows[i].name].err)
	}
	return errors.Join(err, t.leaveNothing(ctx))
}

// printFaults prints the matrix.
func (t *Trial) printFaults(results map[string]faultResult) error {
	w := tabwriter.NewWriter(t.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "\nFAULT\tWHAT THE USER SAW\tLEFT BEHIND\tRECOVERY\n")
	for i := range faultRows {
		row, result := &faultRows[i], results[faultRows[i].name]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", row.fault, result.saw, result.left, result.recovered)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// suffer runs one row.
func (t *Trial) suffer(ctx context.Context, row *faultRow) faultResult {
	result := faultResult{saw: "-", left: "-", recovered: "-"}
	fail := func(what string, err error) faultResult {
		result.err = fmt.Errorf("%s: %s: %w", row.name, what, err)
		return result
	}
	fault, err := t.Fake.Fault(ctx, row.taggedRule())
	if err != nil {
		return fail("setting the fault", err)
	}
	if err := t.rowPool(ctx, row); err != nil {
		return fail("making the pool", err)
	}
	began := time.Now()
	if err := t.Create(ctx, t.Pod(row.name, row.name, "1", onPool(row.name))); err != nil {
		return fail("creating the pod", err)
	}
	if result.saw, err = t.waitSeen(ctx, row); err != nil {
		return fail("what the user saw", err)
	}
	by := "by itself"
	if row.fix != nil {
		if err := errors.Join(t.Fake.ClearFault(ctx, fault), row.fix(ctx, t, row)); err != nil {
			return fail(row.fixed, err)
		}
		began, by = time.Now(), row.fixed
	}
	if err := t.WaitBound(ctx, row.name, 1, cmp.Or(row.within, faultRecovers)); err != nil {
		result.recovered = "no"
		return fail("recovery", err)
	}
	result.recovered = fmt.Sprintf("%s after %s", by, time.Since(began).Round(100*time.Millisecond))
	if result.left, err = t.leftBehind(ctx, row); err != nil {
		return fail("left behind", err)
	}
	if fired, err := t.Fake.FiredRule(ctx, fault); err != nil || (fired == 0 && row.fix == nil) {
		return fail("the fault", errors.Join(errNeverFired, err))
	}
	return result
}

// taggedRule is the rule, restricted to this pool.
func (r *faultRow) taggedRule() map[string]any {
	rule := maps.Clone(r.rule)
	if rule["tags"] == nil && rule["params"] == nil {
		rule["tags"] = map[string]any{"karpenter.sh/nodepool": r.name}
	}
	return rule
}

// rowPool makes the NodePool, and the EC2NodeClass if the row has its own.
func (t *Trial) rowPool(ctx context.Context, row *faultRow) error {
	class := "default"
	if row.class != nil {
		class = row.name
		if err := t.NodeClass(ctx, class, row.class...); err != nil {
			return err
		}
	}
	return t.NodePool(ctx, row.name, change{"spec.template.spec.requirements", row.requirements()},
		change{"spec.template.spec.nodeClassRef.name", class})
}

func (r *faultRow) requirements() []any {
	in := func(key string, values []string) any {
		list := make([]any, len(values))
		for i, value := range values {
			list[i] = value
		}
		return map[string]any{"key": key, "operator": "In", "values": list}
	}
	capacity := r.capacity
	if len(capacity) == 0 {
		capacity = []string{"on-demand"}
	}
	zones := r.zones
	if len(zones) == 0 {
		zones = []string{"us-east-1a", "us-east-1b"}
	}
	return []any{
		in("node.kubernetes.io/instance-type", r.types), in("karpenter.sh/capacity-type", capacity), in("topology.kubernetes.io/zone", zones),
	}
}

// allow lets a pool use other types, zones or capacity types.
func allow(edit func(*faultRow)) func(context.Context, *Trial, *faultRow) error {
	return func(ctx context.Context, t *Trial, row *faultRow) error {
		wider := *row
		edit(&wider)
		return t.rowPool(ctx, &wider)
	}
}

// untilCleared is for faults that end when they are cleared, which is done for every row with a fix.
func untilCleared(context.Context, *Trial, *faultRow) error { return nil }

// deleteClaims is what a user does to a machine that does not come.
func deleteClaims(ctx context.Context, t *Trial, row *faultRow) error {
	return t.kubectl(ctx, "delete", "nodeclaim", "-l", "karpenter.sh/nodepool="+row.name, "--wait=false")
}

// leftBehind deletes the pods and the NodePool, and says what does not belong to a NodeClaim before, and what is there after.
func (t *Trial) leftBehind(ctx context.Context, row *faultRow) (string, error) {
	most := max(1, row.launched)
	var launched int
	err := t.Wait(ctx, faultGoes, func(v *judge.View) string {
		var live int
		launched, live = t.machinesOf(v, row)
		if claims := claimsOf(v, row.name); live != len(claims) {
			return fmt.Sprintf("%d machines live for %d NodeClaims", live, len(claims))
		}
		return ""
	})
	if err == nil && launched > most {
		err = fmt.Errorf("%d machines were launched, wanted at most %d", launched, most)
	}
	if err != nil {
		return err.Error(), err
	}
	if err := errors.Join(t.Delete(ctx, row.name), deleteClaims(ctx, t, row), t.kubectl(ctx, "delete", "nodepool", row.name, "--wait=false")); err != nil {
		return "?", err
	}
	err = t.Wait(ctx, faultGoes, func(v *judge.View) string {
		if _, live := t.machinesOf(v, row); live > 0 || len(claimsOf(v, row.name)) > 0 {
			return fmt.Sprintf("%d machines and %d NodeClaims are left", live, len(claimsOf(v, row.name)))
		}
		return ""
	})
	if err != nil {
		return err.Error(), err
	}
	return "nothing", nil
}

// machinesOf counts the machines of the row's pool: ever launched, and not yet terminated.
func (t *Trial) machinesOf(v *judge.View, row *faultRow) (launched, live int) {
	for i := range v.Instances {
		if instance := &v.Instances[i]; instance.Tags["karpenter.sh/nodepool"] == row.name {
			launched++
			if !instance.Terminated() {
				live++
			}
		}
	}
	return launched, live
}

func claimsOf(v *judge.View, pool string) []*judge.Claim {
	var claims []*judge.Claim
	for _, claim := range v.Claims {
		if claim.Pool() == pool {
			claims = append(claims, claim)
		}
	}
	slices.SortFunc(claims, func(a, b *judge.Claim) int { return strings.Compare(a.Name, b.Name) })
	return claims
}

// leaveNothing ends what the rows share.
func (t *Trial) leaveNothing(ctx context.Context) error {
	err := errors.Join(t.Fake.ClearFaults(ctx), t.kubectl(ctx, "delete", "nodepools,ec2nodeclasses", "--all", "--wait=false"))
	return errors.Join(err, t.Wait(ctx, faultGoes, func(v *judge.View) string {
		if !v.NothingLeft() {
			return fmt.Sprintf("%d machines, %d NodeClaims and %d launch templates are left", len(v.LiveInstances()), len(v.Claims), len(v.LaunchTemplates))
		}
		return ""
	}))
}
