// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// fakeCluster is client-go's fake API server with one revision for all kinds.
type fakeCluster struct {
	t        *testing.T
	kube     *kubefake.Clientset
	dyn      *dynamicfake.FakeDynamicClient
	revision atomic.Int64
	served   atomic.Bool // whether NodeClaims are
}

func newFakeCluster(t *testing.T) *fakeCluster {
	t.Helper()
	c := &fakeCluster{t: t, kube: kubefake.NewClientset()}
	c.dyn = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{NodeClaims: "NodeClaimList"})
	c.revision.Store(1000)
	c.kube.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		revision := c.revision.Load()
		handled, list, err := clienttesting.ObjectReaction(c.kube.Tracker())(action)
		if accessor, accessErr := meta.ListAccessor(list); accessErr == nil {
			accessor.SetResourceVersion(strconv.FormatInt(revision, 10))
		}
		return handled, list, err
	})
	c.dyn.PrependReactor("list", "nodeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		if c.served.Load() {
			return false, nil, nil
		}
		return true, nil, apierrors.NewNotFound(NodeClaims.GroupResource(), "")
	})
	return c
}

func (c *fakeCluster) stamp(m *metav1.ObjectMeta) {
	m.ResourceVersion = strconv.FormatInt(c.revision.Add(1), 10)
	if m.UID == "" {
		m.UID = types.UID(m.Namespace + "/" + m.Name)
	}
}

func (c *fakeCluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *fakeCluster) create(objects ...runtime.Object) {
	c.t.Helper()
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Pod:
			o = o.DeepCopy()
			c.stamp(&o.ObjectMeta)
			_, err := c.kube.CoreV1().Pods(o.Namespace).Create(c.t.Context(), o, metav1.CreateOptions{})
			c.must(err)
		case *corev1.Node:
			o = o.DeepCopy()
			c.stamp(&o.ObjectMeta)
			_, err := c.kube.CoreV1().Nodes().Create(c.t.Context(), o, metav1.CreateOptions{})
			c.must(err)
		default:
			c.t.Fatalf("cannot create a %T", object)
		}
	}
}

func (c *fakeCluster) updatePod(pod *corev1.Pod) {
	c.t.Helper()
	pod = pod.DeepCopy()
	c.stamp(&pod.ObjectMeta)
	_, err := c.kube.CoreV1().Pods(pod.Namespace).Update(c.t.Context(), pod, metav1.UpdateOptions{})
	c.must(err)
}

func (c *fakeCluster) deletePod(pod *corev1.Pod) {
	c.t.Helper()
	c.must(c.kube.CoreV1().Pods(pod.Namespace).Delete(c.t.Context(), pod.Name, metav1.DeleteOptions{}))
}

func (c *fakeCluster) createClaim(name, nodeName string) {
	c.t.Helper()
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
		"metadata": map[string]any{
			"name": name, "uid": name, "resourceVersion": strconv.FormatInt(c.revision.Add(1), 10),
			"labels": map[string]any{"karpenter.sh/nodepool": "default"},
		},
		"spec":   map[string]any{"resources": map[string]any{"requests": map[string]any{"cpu": "4"}}},
		"status": map[string]any{"nodeName": nodeName, "providerID": "aws:///us-east-1a/i-" + nodeName},
	}}
	_, err := c.dyn.Resource(NodeClaims).Create(c.t.Context(), claim, metav1.CreateOptions{})
	c.must(err)
}

// breakable makes the watches of resource such that breakWith ends them, and each
// attempt to open one again fails with its error, until repair. What happened
// meanwhile is not replayed.
func (c *fakeCluster) breakable(resource string) (breakWith func(error), repair func()) {
	var mu sync.Mutex
	var open []*watch.RaceFreeFakeWatcher
	var failure error
	c.kube.PrependWatchReactor(resource, func(action clienttesting.Action) (bool, watch.Interface, error) {
		mu.Lock()
		defer mu.Unlock()
		if failure != nil {
			return true, nil, failure
		}
		w, err := c.kube.Tracker().Watch(action.GetResource(), action.GetNamespace(), metav1.ListOptions{
			ResourceVersion: "999999999", // only what is new
		})
		if err != nil {
			return true, nil, err
		}
		fake, ok := w.(*watch.RaceFreeFakeWatcher)
		if ok {
			open = append(open, fake)
		}
		return true, w, nil
	})
	breakWith = func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failure = err
		for _, w := range open {
			w.Stop()
		}
		open = nil
	}
	repair = func() {
		mu.Lock()
		defer mu.Unlock()
		failure = nil
	}
	return breakWith, repair
}

// fakeAWS is the control API of the fake AWS endpoint, of what is in it.
type fakeAWS struct {
	mu        sync.Mutex
	calls     []Call
	instances map[string]Instance
	templates []LaunchTemplate
	url       string
}

func newFakeAWS(t *testing.T) *fakeAWS {
	t.Helper()
	f := &fakeAWS{instances: map[string]Instance{}}
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, value any) {
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("GET /_fake/calls", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		since, _ := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
		calls := []Call{}
		for _, call := range f.calls {
			if call.Seq > since {
				calls = append(calls, call)
			}
		}
		reply(w, calls)
	})
	mux.HandleFunc("GET /_fake/instances", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		instances := []Instance{}
		for _, instance := range f.instances {
			instances = append(instances, instance)
		}
		reply(w, instances)
	})
	mux.HandleFunc("GET /_fake/launch-templates", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		reply(w, f.templates)
	})
	mux.HandleFunc("GET /_fake/prices", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]float64{"m5.xlarge": 0.192})
	})
	mux.HandleFunc("GET /_fake/rates", func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]Rate{"CreateFleet": {50, 5}}) })
	mux.HandleFunc("GET /_fake/queues", func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]QueueCounts{}) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// launch is a CreateFleet with its instance.
func (f *fakeAWS) launch(instance Instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := Stamp{time.Now()}
	f.calls = append(f.calls, Call{
		Seq: int64(len(f.calls) + 1), Time: now, AccessKey: "AK", Service: "ec2", Action: "CreateFleet",
		Params: map[string]any{"ClientToken": instance.ClientToken}, Status: http.StatusOK,
	})
	instance.LaunchedAt, instance.State = now, "running"
	f.instances[instance.ID] = instance
}
