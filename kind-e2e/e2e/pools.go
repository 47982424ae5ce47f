// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// change sets a field of a manifest: a path of map keys, and the value; nil removes it.
type change struct {
	path  string // spec.limits.cpu
	value any
}

// Buyable applies the NodePool and EC2NodeClass of the examples. Machines are kept when they are empty, unless a change
// says otherwise; changes are of the NodePool.
func (t *Trial) Buyable(ctx context.Context, changes ...change) error {
	if err := t.NodeClass(ctx, "default"); err != nil {
		return err
	}
	return t.NodePool(ctx, "default", changes...)
}

// NodePool applies the NodePool of the examples under a name, with changes.
func (t *Trial) NodePool(ctx context.Context, name string, changes ...change) error {
	keep := change{"spec.disruption.consolidateAfter", "Never"}
	return t.example(ctx, "nodepool.yaml", name, append([]change{keep}, changes...))
}

// NodeClass applies the EC2NodeClass of the examples under a name, with changes.
func (t *Trial) NodeClass(ctx context.Context, name string, changes ...change) error {
	return t.example(ctx, "ec2nodeclass.yaml", name, changes)
}

func (t *Trial) example(ctx context.Context, file, name string, changes []change) error {
	text, err := os.ReadFile(filepath.Join(t.Root, "manifests/examples", file))
	if err != nil {
		return err
	}
	object := map[string]any{}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	for _, c := range append([]change{{"metadata.name", name}}, changes...) {
		fields := strings.Split(c.path, ".")
		if c.value == nil {
			unstructured.RemoveNestedField(object, fields...)
			continue
		}
		if err := unstructured.SetNestedField(object, c.value, fields...); err != nil {
			return fmt.Errorf("changing %s of %s: %w", c.path, file, err)
		}
	}
	out, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	return t.Cluster.Apply(ctx, out)
}
