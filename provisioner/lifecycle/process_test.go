// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// inFlight is an action that the world has not carried out yet.
type inFlight struct {
	a  Action
	at time.Time
}

// process is a shell and a scheduler around the state: what dies in a crash.
type process struct {
	t        *rapid.T
	w        *world
	state    *State
	flying   []inFlight
	parked   map[types.UID]string // on which planned node
	cache    map[string]bool      // planned nodes
	restored map[string]bool
	expected []types.UID // places kept for pods that owners are about to create
	log      []string
	done     int // actions but polls
}

// start feeds a new process with all that the world has, as a new leader does.
func start(t *rapid.T, w *world) *process {
	p := &process{t: t, w: w, state: New(Config{}), parked: map[types.UID]string{}, cache: map[string]bool{}, restored: map[string]bool{}}
	w.told = map[string][]Event{}
	p.apply(PoolSeen{Pool: testPool("1m")})
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		p.apply(NodeSeen{Node: w.nodes[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		p.apply(ClaimSeen{Claim: w.claims[name]})
	}
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		if node := w.pods[uid]; node != "" {
			p.apply(PodSeen{Pod: testPod(string(uid)), Node: node})
		}
	}
	p.apply(Synced{})
	return p
}

// apply gives the state one fact, and does at once what concerns the scheduler.
func (p *process) apply(ev Event) {
	actions := p.state.Apply(p.w.now, ev)
	for _, a := range actions {
		p.log = append(p.log, describe(a))
		if _, poll := a.(AwaitTermination); !poll {
			p.done++
		}
		switch a := a.(type) {
		case AddPlannedNode:
			if p.cache[a.Node.Name] {
				p.t.Fatalf("%s: added twice", a.Key())
			}
			p.cache[a.Node.Name] = true
		case UpdatePlannedNode:
			if !p.cache[a.Node.Name] {
				p.t.Fatalf("%s: not there", a.Key())
			}
		case RemovePlannedNode:
			if !p.cache[a.Name] {
				p.t.Fatalf("%s: not there", a.Key())
			}
			delete(p.cache, a.Name)
			for uid, node := range p.parked {
				if node == a.Name {
					p.t.Fatalf("%s: pod %s is parked on it", a.Key(), uid)
				}
			}
		case Requeue:
			for _, uid := range a.Pods {
				delete(p.parked, uid)
			}
		case Activate, Publish, PoolOpen:
		default:
			for _, f := range p.flying {
				if f.a.Key() == a.Key() {
					p.t.Fatalf("%s: in flight twice", a.Key())
				}
			}
			p.flying = append(p.flying, inFlight{a: a, at: p.w.now})
		}
	}
	if err := p.state.Check(); err != nil {
		p.t.Fatalf("after %T: %v", ev, err)
	}
	for c := range p.state.Claims() {
		if c.NeedsRestore && !p.restored[c.Name] {
			p.restored[c.Name] = true
			p.apply(Restore{Claim: c.Name, Node: plannedNode(c.Name), Options: testOptions(), Daemons: v1.ResourceList{}})
		}
	}
}

type outcome int

const (
	works     outcome = iota
	fails             // without effect
	lost              // effect, but the answer is a failure
	silent            // effect, no answer at all
	withheld          // no effect, no answer
	short             // a launch lacks one machine
	broken            // launched machines never join
	undersize         // launched machines are smaller than their type
	refused           // a claim is not taken, a launch is rejected
	outcomes
)

// finish ends one action in flight.
func (p *process) finish(i int, how outcome) {
	a := p.flying[i].a
	p.flying = slices.Delete(p.flying, i, i+1)
	failure := Event(Failed{Key: a.Key(), Message: "no"})
	if l, ok := a.(Launch); ok {
		failure = LaunchFailed{Group: l.Group, Attempt: l.Attempt, Failure: "Unknown"}
	}
	if how == fails {
		p.apply(failure)
		return
	}
	if how == withheld {
		return
	}
	if how == refused && p.refuse(a) {
		return
	}
	ev := p.w.do(a, how == short, how == broken)
	if l, ok := ev.(Launched); ok && how == undersize {
		for _, inst := range l.Instances {
			p.w.machines[inst.ProviderID].small = true
		}
	}
	switch how {
	case lost:
		p.apply(failure)
	case silent:
	default:
		p.apply(ev)
	}
}

// refuse is a webhook, or a class that cannot be launched. It tells whether the action can be refused.
func (p *process) refuse(a Action) bool {
	switch a := a.(type) {
	case CreateClaim:
		if p.w.claims[a.Object.Name] != nil {
			return false
		}
		p.apply(ClaimRefused{Name: a.Object.Name, Message: "quota"})
	case Launch:
		p.apply(LaunchFailed{Group: a.Group, Attempt: a.Attempt, Failure: cloudprovider.NodeClassNotReady, Message: "no subnet"})
	default:
		return false
	}
	return true
}

// deliver tells one fact of a kind.
func (p *process) deliver(kind string) {
	if q := p.w.told[kind]; len(q) > 0 {
		p.w.told[kind] = q[1:]
		if gone, ok := q[0].(PodGone); ok {
			delete(p.parked, gone.UID)
		}
		p.apply(q[0])
	}
}

// pass lets time go by; the shell's own deadlines end what hangs.
func (p *process) pass(d time.Duration) {
	end := p.w.now.Add(d)
	for range 10000 {
		next := end
		if at, ok := p.state.NextDeadline(); ok && at.Before(next) {
			next = at
		}
		for i := 0; i < len(p.flying); i++ {
			if limit := p.flying[i].at.Add(25 * time.Second); limit.Before(next) {
				p.w.now = later(p.w.now, limit)
				p.finish(i, fails)
				i = -1
				next = end
				if at, ok := p.state.NextDeadline(); ok && at.Before(next) {
					next = at
				}
			}
		}
		p.w.now = later(p.w.now, next)
		p.apply(Tick{})
		if !next.Before(end) {
			return
		}
	}
	p.t.Fatalf("time does not pass: %s", p.log[len(p.log)-1])
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// cycle is one scheduling cycle of a pending pod.
func (p *process) cycle(uid types.UID, size int) {
	if node, ok := p.w.pods[uid]; !ok || node != "" || p.parked[uid] != "" {
		return
	}
	claim, paired := p.state.Reservation(uid)
	if claim != "" {
		if !p.cache[claim] {
			p.t.Fatalf("pod %s is to be parked on %s, which is not in the cache", uid, claim)
		}
		p.parked[uid] = claim
		return
	}
	if paired != "" {
		if p.fits(paired, true) {
			p.bind(uid, paired)
		} else {
			p.apply(PodMisfit{UID: uid})
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(p.w.nodes)) {
		if p.fits(name, false) {
			p.bind(uid, name)
			return
		}
	}
	p.plan(uid, size)
}

func (p *process) bind(uid types.UID, node string) {
	p.apply(PodReserved{UID: uid, Node: node})
	p.w.bind(uid, node)
}

func (p *process) fits(name string, paired bool) bool {
	n := p.w.nodes[name]
	if p.state.Gates()[name] == Closed || n == nil || !nodeReady(n) || n.DeletionTimestamp != nil {
		return false
	}
	if n.Spec.Unschedulable && !(holding(n) && (paired || p.state.Gates()[name] == Released)) || !registered(n) || hasTaint(n, &karpv1.DisruptedNoScheduleTaint) {
		return false
	}
	return scheduling.Fits(scheduling.Times(resources(1, 1), len(p.w.podsOn(name))+1), n.Status.Allocatable)
}

// plan is a simple planner: all pods that wait, three to a claim.
func (p *process) plan(first types.UID, size int) {
	var pods []Pod
	for _, uid := range slices.Sorted(maps.Keys(p.w.pods)) {
		claim, node := p.state.Reservation(uid)
		if p.w.pods[uid] == "" && claim == "" && node == "" {
			pods = append(pods, testPod(string(uid)))
		}
	}
	if size == 2 { // as if the owner wanted one more
		pods = append(pods, testPod(p.w.name("expected")))
		p.expected = append(p.expected, pods[len(pods)-1].UID)
	}
	var ev Planned
	for _, open := range p.state.Open() {
		n := min(len(pods), int(open.Free.Cpu().Value()))
		if n > 0 {
			ev.Joins = append(ev.Joins, Join{Claim: open.Name, Pods: pods[:n]})
			pods = pods[n:]
		}
	}
	for len(pods) > 0 {
		g := Group{ID: p.w.name("g")}
		count := min(size, (len(pods)+2)/3)
		for i := range count {
			n := min(3, len(pods))
			g.Claims = append(g.Claims, newClaim(g.ID, g.ID+"-"+strconv.Itoa(i), i, count, pods[:n]...))
			pods = pods[n:]
		}
		ev.Groups = append(ev.Groups, g)
	}
	p.apply(ev)
}
