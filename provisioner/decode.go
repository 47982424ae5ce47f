// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// The three kinds of Karpenter's API that are watched.
var (
	nodePools   = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	nodeClaims  = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	nodeClasses = schema.GroupVersionResource{Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"}
)

// decode turns an informer's object into its type. unknown names the fields under spec that the type does not have:
// a user's newer YAML, which must be answered and not be dropped.
func decode[T any](o any) (obj *T, unknown []string, err error) {
	u, ok := deleted[*unstructured.Unstructured](o)
	if !ok {
		return nil, nil, fmt.Errorf("decoding %T: not an object", o)
	}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return nil, nil, fmt.Errorf("decoding %s: %w", u.GetName(), err)
	}
	obj = new(T)
	strict, err := kjson.UnmarshalStrict(raw, obj, kjson.DisallowUnknownFields)
	if err != nil {
		return nil, nil, fmt.Errorf("decoding %s: %w", u.GetName(), err)
	}
	for _, s := range strict {
		var field kjson.FieldError
		if errors.As(s, &field) && underSpec(field.FieldPath()) {
			unknown = append(unknown, field.FieldPath())
		}
	}
	return obj, unknown, nil
}

// encode goes through JSON: Karpenter's types keep what users wrote in fields that only their own marshallers know.
func encode(obj any) (map[string]any, error) {
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return out, nil
}

func underSpec(path string) bool { return len(path) > 5 && path[:5] == "spec." }
