// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Users' YAML may be newer than the types we are built with: what we do not know is named, never dropped in silence.
func TestDecodeNamesUnknownSpecFields(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		yaml string
		want []string
	}{
		"known fields": {yaml: `{metadata: {name: a}, spec: {role: r}}`},
		"unknown field": {
			yaml: `{metadata: {name: a}, spec: {role: r, fromTheFuture: 1}}`,
			want: []string{"spec.fromTheFuture"},
		},
		"unknown field in a list": {
			yaml: `{metadata: {name: a}, spec: {subnetSelectorTerms: [{tags: {a: b}, zoneGroup: x}]}}`,
			want: []string{"spec.subnetSelectorTerms[0].zoneGroup"},
		},
		"unknown status is not the user's": {yaml: `{metadata: {name: a}, spec: {role: r}, status: {new: 1}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := map[string]any{}
			if err := yaml.Unmarshal([]byte(tc.yaml), &obj); err != nil {
				t.Fatal(err)
			}
			class, unknown, err := decode[awsv1.EC2NodeClass](&unstructured.Unstructured{Object: obj})
			if err != nil || class.Name != "a" {
				t.Fatalf("decode = %v, %v", class, err)
			}
			if diff := cmp.Diff(tc.want, unknown); diff != "" {
				t.Errorf("unknown fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeRefusesWhatIsNoObject(t *testing.T) {
	t.Parallel()
	if _, _, err := decode[awsv1.EC2NodeClass]("text"); err == nil {
		t.Error("decode of a string succeeded")
	}
}
