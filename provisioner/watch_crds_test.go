// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// Only a "not found" says that a CRD is not served; any other error says nothing.
func TestMissingCRDs(t *testing.T) {
	t.Parallel()
	all := []*metav1.APIResourceList{
		{GroupVersion: "karpenter.sh/v1", APIResources: []metav1.APIResource{{Name: "nodepools"}, {Name: "nodeclaims"}}},
		{GroupVersion: "karpenter.k8s.aws/v1", APIResources: []metav1.APIResource{{Name: "ec2nodeclasses"}}},
	}
	for name, tc := range map[string]struct {
		served  []*metav1.APIResourceList
		err     error
		want    string
		wantErr bool
	}{
		"all there":       {served: all, want: ""},
		"group absent":    {served: all[:1], want: "ec2nodeclasses.karpenter.k8s.aws"},
		"kind absent":     {served: []*metav1.APIResourceList{{GroupVersion: "karpenter.sh/v1", APIResources: all[0].APIResources[:1]}}, want: "nodeclaims.karpenter.sh"},
		"not found":       {served: all, err: apierrors.NewNotFound(schema.GroupResource{}, "karpenter.sh/v1"), want: "nodepools.karpenter.sh"},
		"no answer":       {served: all, err: errors.New("connection refused"), wantErr: true},
		"not now":         {served: all, err: apierrors.NewServiceUnavailable("starting"), wantErr: true},
		"not for you yet": {served: all, err: apierrors.NewForbidden(schema.GroupResource{}, "", nil), wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newShell(t, nil)
			client := p.Client.(*fake.Clientset)
			client.Resources = tc.served
			if tc.err != nil {
				client.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			}
			got, err := p.missingCRDs()
			if got != tc.want || (err != nil) != tc.wantErr {
				t.Errorf("missingCRDs = %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

// A DaemonSet that shrinks leaves more room on every new node; its status says nothing.
func TestDaemonSetChangesAreChanges(t *testing.T) {
	t.Parallel()
	sized := func(cpu string, scheduled int32) *appsv1.DaemonSet {
		ds := &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{CurrentNumberScheduled: scheduled}}
		ds.Spec.Template.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)},
		}}}
		return ds
	}
	for name, tc := range map[string]struct {
		now  *appsv1.DaemonSet
		want bool
	}{
		"its pods shrink": {sized("1", 3), true},
		"one more runs":   {sized("2", 4), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newShell(t, nil)
			before := p.epoch
			p.daemonSetChanged(sized("2", 3), tc.now)
			if got := p.epoch != before; got != tc.want {
				t.Errorf("a change: %t, want %t", got, tc.want)
			}
		})
	}
}
