// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
)

// newShell makes a leading Provisioner whose actions beside the scheduler wait for ever: tests say themselves what
// came of them. Objects in the informers' stores are put there by hand.
func newShell(t *testing.T, cloud cloudprovider.Interface) (*Provisioner, *queue) {
	t.Helper()
	client := fake.NewClientset()
	p, err := New(Options{
		Client: client, Informers: informers.NewSharedInformerFactory(client, 0), Cloud: cloud, ClusterName: "demo",
		Recorder: events.NewFakeRecorder(1000), SchedulerNames: []string{"jit-scheduler"},
	})
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{}
	p.SetScheduler(q)
	p.ctx = t.Context()
	p.slots = slots{} // no action ever gets one
	p.karpenter.listed = true
	p.apply(lifecycle.Synced{})
	p.synced = true
	return p, q
}

// store puts an object into an informer's store.
func store(t *testing.T, add func(any) error, objects ...any) {
	t.Helper()
	for _, o := range objects {
		if err := add(o); err != nil {
			t.Fatal(err)
		}
	}
}

// queue is a scheduler without cycles: it remembers who was woken.
type queue struct {
	activated []types.UID
	pending   []*v1.Pod
}

var _ Scheduler = &queue{}

func (*queue) Saw(*v1.Node) bool           { return true }
func (*queue) AddPlannedNode(*v1.Node)     {}
func (*queue) UpdatePlannedNode(*v1.Node)  {}
func (*queue) RemovePlannedNode(string)    {}
func (q *queue) Unpark(pods []types.UID)   { q.activated = append(q.activated, pods...) }
func (*queue) Drop(types.UID)              {}
func (q *queue) Activate(pods []types.UID) { q.activated = append(q.activated, pods...) }
func (*queue) Parked(types.UID) *v1.Pod    { return nil }
func (q *queue) Pending() []*v1.Pod        { return q.pending }
func (*queue) NewFitter(string) (plan.Fitter, error) {
	return nil, errors.New("this scheduler has no filters")
}

// machines is a cloud that lists, finds and ends what it was given; err, if set, is its answer to every question.
type machines struct {
	cloudprovider.Interface

	// hidden are live instances that List does not show; vanish is one that it shows and that is gone.
	listed, hidden []cloudprovider.Instance
	vanish         string
	mu             sync.Mutex
	terminated     []string
	swept          bool
	err            error
}

func (m *machines) List(context.Context) ([]cloudprovider.Instance, error) { return m.listed, m.err }

func (m *machines) FindLaunched(context.Context, string) ([]cloudprovider.Instance, error) {
	return m.listed, m.err
}

func (m *machines) Get(_ context.Context, id string) (*cloudprovider.Instance, error) {
	for _, inst := range slices.Concat(m.listed, m.hidden) {
		if inst.ProviderID == id && id != m.vanish {
			return &inst, m.err
		}
	}
	return nil, cloudprovider.ErrInstanceNotFound
}

func (m *machines) Terminate(_ context.Context, id string) error {
	if _, err := m.Get(context.Background(), id); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.terminated = append(m.terminated, id)
	return nil
}

func (m *machines) Sweep(context.Context, time.Duration) error {
	m.swept = true
	return nil
}

func testPod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec:       v1.PodSpec{SchedulerName: "jit-scheduler"},
	}
}

// An error of the cloud says nothing about machines: taken for "there are none", the group would be launched again.
func TestFindingFailsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	p, _ := newShell(t, &machines{err: errors.New("RequestLimitExceeded")})
	evs, err := p.effect(t.Context(), lifecycle.FindInstances{Group: "g"})
	if err == nil || len(evs) > 0 {
		t.Errorf("effect = %v, %v; want no event and an error", evs, err)
	}
}
