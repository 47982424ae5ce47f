// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
	"github.com/jit-scheduler/jit-scheduler/provisioner"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider/ec2"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider/pricefile"
)

func TestMain(m *testing.M) {
	// The tracker panics when a watcher has that many events to read; 1,000 pods come at one instant here.
	watch.DefaultChanSize = 20000
	Main(m)
}

var (
	nodePools   = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	nodeClaims  = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	nodeClasses = schema.GroupVersionResource{Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"}
)

// world is a cluster with everything around the product: API server, controllers, kubelets and AWS. The product in
// it, scheduler, provisioner and EC2 adapter, is real and can be killed and started again.
type world struct {
	*Cluster // of the process that runs now

	first   *Cluster // whose API server all others use
	dynamic *dynamicfake.FakeDynamicClient
	aws     *fakeaws.Server
	began   time.Time
	config  string
	prices  *pricefile.File
	cloud   *ec2.Provider // of the process that runs now

	endKarpenter context.CancelFunc // of its renewals

	mu         sync.Mutex
	refusals   []refusal
	violations []string
	players    map[string]*player
	remembered map[string]string

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// refusal answers creates of a resource with an error.
type refusal struct {
	resource string
	times    int
	err      error
}

// newWorld is a cluster without any object in which the product has not been started.
func newWorld(t *testing.T, config string) *world {
	w := &world{config: config, began: time.Now(), players: map[string]*player{}, remembered: map[string]string{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	t.Cleanup(func() {
		w.cancel()
		w.running.Wait()
		time.Sleep(10 * time.Minute) // for what the killed process was waiting for: a bubble ends with its last goroutine
	})
	settings := fakeaws.DefaultSettings()
	settings.NodeLifecycle = true
	w.aws = fakeaws.New(fakeaws.Options{
		ClusterName: "demo", CA: []byte("-----BEGIN CERTIFICATE-----\nZg==\n-----END CERTIFICATE-----\n"), Settings: &settings,
		NodeClient: func(context.Context, fakeaws.ClusterInfo, string) (kubernetes.Interface, error) {
			return w.first.Client, nil
		},
	})
	t.Cleanup(w.aws.Close)
	w.start(t)
	return w
}

// newCloud is the EC2 adapter of a process that starts.
func (w *world) newCloud() *ec2.Provider {
	w.cloud = ec2.New(ec2.Options{ClusterName: "demo", AWS: w.aws.AWSConfig("AKsim"), Prices: w.prices})
	return w.cloud
}

// start starts the product; what exists in the cluster stays as it is.
func (w *world) start(t *testing.T) {
	o := Options{Config: w.config, Logger: logger(t), Provisioner: func(c *Cluster) nodeprovisioning.Provisioner {
		if w.first == nil {
			w.first = c
			w.serveAPI(c)
		}
		p, err := provisioner.New(provisioner.Options{
			Client: c.Client, Dynamic: w.dynamic, Informers: c.Informers, ClusterName: "demo", Recorder: c.Recorder,
			SchedulerNames: []string{"jit-scheduler"},
			Cloud:          w.newCloud(),
			Leading: func() error {
				if c.Ctx.Err() != nil {
					return errors.New("this process was killed")
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		p.SetScheduler(c.Adapter)
		c.running.Go(func() { p.WatchCloud(c.Ctx) })
		return p
	}}
	if w.first != nil {
		o.Client = w.first.Client
	}
	w.Cluster = Start(t, o)
}

// restart kills the product and starts another process.
func (w *world) restart() {
	w.Stop()
	w.start(w.T)
}

// logger keeps what the product says for those who read a failed test; SIM_LOG is its verbosity.
func logger(t *testing.T) *klog.Logger {
	level := 0
	if _, err := fmt.Sscan(os.Getenv("SIM_LOG"), &level); err != nil {
		level = 0
	}
	l := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(t.Output()), textlogger.Verbosity(level)))
	return &l
}

// serveAPI makes the two fake clients one API server.
func (w *world) serveAPI(c *Cluster) {
	w.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		nodePools: "NodePoolList", nodeClaims: "NodeClaimList", nodeClasses: "EC2NodeClassList",
	})
	w.serveCRDs(true)
	core := &apiServer{tracker: c.Client.Tracker()}
	custom := &apiServer{tracker: w.dynamic.Tracker()}
	for _, a := range []*apiServer{core, custom} {
		a.next, a.refuse, a.binding, a.wrote, a.removed, a.stopped = c.next, w.refuse, w.binding, w.wrote, w.removed, w.stopped
	}
	c.Client.PrependReactor("*", "*", core.react)
	w.dynamic.PrependReactor("*", "*", custom.react)
}

// serveCRDs says in discovery whether Karpenter's kinds exist.
func (w *world) serveCRDs(served bool) {
	var lists []*metav1.APIResourceList
	if served {
		lists = []*metav1.APIResourceList{
			{GroupVersion: "karpenter.sh/v1", APIResources: []metav1.APIResource{{Name: "nodepools", Kind: "NodePool"}, {Name: "nodeclaims", Kind: "NodeClaim"}}},
			{GroupVersion: "karpenter.k8s.aws/v1", APIResources: []metav1.APIResource{{Name: "ec2nodeclasses", Kind: "EC2NodeClass"}}},
		}
	}
	// Discovery reads the field without a lock: the product must be at rest, as it is after synctest.Wait.
	w.first.Client.Resources = lists
}

func (w *world) refuse(gvr schema.GroupVersionResource, _ metav1.Object) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.refusals {
		if r := &w.refusals[i]; r.resource == gvr.Resource && r.times > 0 {
			r.times--
			return r.err
		}
	}
	return nil
}

// later runs f after a while beside everything else, unless the world ends before.
func (w *world) later(d time.Duration, f func()) {
	w.running.Go(func() {
		select {
		case <-w.ctx.Done():
		case <-time.After(d):
			f()
		}
	})
}

func (w *world) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf("at %s: ", time.Since(w.began))+fmt.Sprintf(format, args...))
}

// api is the API server, whichever process runs.
func (w *world) api() kubernetes.Interface { return w.first.Client }

// custom is the client of a kind of Karpenter.
func (w *world) custom(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	return w.dynamic.Resource(gvr)
}

// list is all objects of one of Karpenter's kinds, by name.
func (w *world) list(gvr schema.GroupVersionResource) []unstructured.Unstructured {
	list, err := w.custom(gvr).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list.Items
}

// pods are the pods of namespace default whose name begins with prefix, by name.
func (w *world) pods(prefix string) []v1.Pod {
	list, err := w.api().CoreV1().Pods("default").List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p v1.Pod) bool { return p.Name != prefix && !strings.HasPrefix(p.Name, prefix+"-") && prefix != "" })
}

// live are the machines that are paid for.
func (w *world) live() []fakeaws.Instance {
	return slices.DeleteFunc(w.aws.Instances(), func(i fakeaws.Instance) bool { return i.State == "terminated" || i.State == "shutting-down" })
}
