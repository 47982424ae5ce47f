// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"encoding/json"
	"slices"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// karpenterObject is an object of one of Karpenter's kinds as the API server has it.
func karpenterObject(gvr schema.GroupVersionResource, kind, name string, uid types.UID, finalizers ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(gvr.GroupVersion().String())
	u.SetKind(kind)
	u.SetName(name)
	u.SetUID(uid)
	u.SetResourceVersion("1")
	u.SetFinalizers(finalizers)
	return u
}

// newObjects is a dynamic client with these objects. With concurrent, somebody puts one more finalizer on an object
// right before the first patch of it arrives, and the patch is refused if it names the version before that.
func newObjects(t *testing.T, concurrent bool, objects ...runtime.Object) *dynamicfake.FakeDynamicClient {
	t.Helper()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		nodePools: "NodePoolList", nodeClaims: "NodeClaimList", nodeClasses: "EC2NodeClassList",
	}, objects...)
	client.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch := a.(clienttesting.PatchAction)
		if patch.GetSubresource() != "" {
			return false, nil, nil
		}
		obj, err := client.Tracker().Get(a.GetResource(), "", patch.GetName())
		if err != nil {
			return true, nil, err
		}
		have := obj.(*unstructured.Unstructured).DeepCopy()
		if concurrent {
			concurrent = false
			have.SetFinalizers(append(have.GetFinalizers(), "example.com/other"))
			have.SetResourceVersion("2")
			if err := client.Tracker().Update(a.GetResource(), have, ""); err != nil {
				return true, nil, err
			}
		}
		var body metav1.PartialObjectMetadata
		if err := json.Unmarshal(patch.GetPatch(), &body); err != nil {
			return true, nil, err
		}
		if v := body.ResourceVersion; v != "" && v != have.GetResourceVersion() {
			return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), patch.GetName(), nil)
		}
		return false, nil, nil
	})
	return client
}

// Finalizers are a list: one that somebody else puts on an object at the same time must stay.
func TestFinalizersOfOthersStay(t *testing.T) {
	t.Parallel()
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}}
	claim := karpenterObject(nodeClaims, "NodeClaim", "n", "u", karpv1.TerminationFinalizer)
	for name, tc := range map[string]struct {
		gvr    schema.GroupVersionResource
		object *unstructured.Unstructured
		do     func(*Provisioner) error
		want   []string
	}{
		"ours is added to a class": {
			nodeClasses, karpenterObject(nodeClasses, "EC2NodeClass", "c", "u"),
			func(p *Provisioner) error { return p.patchClass(t.Context(), class, class.DeepCopy()) },
			[]string{"example.com/other", awsv1.TerminationFinalizer},
		},
		"not to another class of its name": {
			nodeClasses, karpenterObject(nodeClasses, "EC2NodeClass", "c", "later"),
			func(p *Provisioner) error { return p.patchClass(t.Context(), class, class.DeepCopy()) },
			nil,
		},
		"ours is taken off a claim": {
			nodeClaims, claim,
			func(p *Provisioner) error {
				return p.removeClaimFinalizer(t.Context(), lifecycle.RemoveClaimFinalizer{Name: "n", UID: "u"})
			},
			[]string{"example.com/other"},
		},
		"not off another claim of its name": {
			nodeClaims, claim,
			func(p *Provisioner) error {
				return p.removeClaimFinalizer(t.Context(), lifecycle.RemoveClaimFinalizer{Name: "n", UID: "before"})
			},
			[]string{karpv1.TerminationFinalizer},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newShell(t, nil)
			p.Dynamic = newObjects(t, true, tc.object.DeepCopy())
			if err := tc.do(p); err != nil {
				t.Fatal(err)
			}
			now, err := p.Dynamic.Resource(tc.gvr).Get(t.Context(), tc.object.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(now.GetFinalizers(), tc.want) {
				t.Errorf("finalizers %v, want %v", now.GetFinalizers(), tc.want)
			}
		})
	}
}

// A Node may be replaced by another one of its name between the decision and the call.
func TestOnlyTheNodeThatWasMeantGoes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		uid      types.UID
		wantGone bool
	}{
		"the one":                 {"u", true},
		"another one of its name": {"before", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newShell(t, nil)
			client := p.Client.(*fake.Clientset)
			node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Finalizers: []string{karpv1.TerminationFinalizer}}}
			if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			client.PrependReactor("delete", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if pre := a.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions; pre == nil || *pre.UID != "u" {
					return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), "n", nil)
				}
				return false, nil, nil
			})
			if err := p.removeNodeFinalizer(t.Context(), lifecycle.RemoveNodeFinalizer{Node: "n", UID: tc.uid}); err != nil {
				t.Fatal(err)
			}
			now, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
			if err != nil || len(now.Finalizers) == 0 != tc.wantGone {
				t.Errorf("finalizers %v, %v", now.Finalizers, err)
			}
			if err := p.deleteNode(t.Context(), lifecycle.DeleteNode{Node: "n", UID: tc.uid}); err != nil {
				t.Fatal(err)
			}
			if _, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{}); apierrors.IsNotFound(err) != tc.wantGone {
				t.Errorf("after the deletion: %v", err)
			}
		})
	}
}
