// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
)

const classKind = "EC2NodeClass"

var classResource = schema.GroupVersionResource{Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"}

// nodeClass is an EC2NodeClass and where it came from.
type nodeClass struct {
	*awsv1.EC2NodeClass
	document *document // nil: from the cluster, or the defaults
}

// blame says where the field is that a message of the provisioner begins with.
func (c *nodeClass) blame(err error) error {
	match := pathOf.FindStringSubmatch(err.Error())
	switch {
	case match == nil || c.document == nil && c.Name == "":
		return badInput("%v", err)
	case c.document == nil:
		return badInput("%s %s: %v", classKind, c.Name, err)
	}
	return c.document.at(match[1], "%s", match[2])
}

// defaultClass is what a NodeClass that says nothing comes to.
func defaultClass() *nodeClass {
	return &nodeClass{EC2NodeClass: &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}}}}
}

// isFile tells a path from the name of an object in the cluster.
func isFile(name string) bool {
	if name == "-" || strings.ContainsRune(name, filepath.Separator) || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
		return true
	}
	_, err := os.Stat(name)
	return err == nil
}

// readClassFile reads the one EC2NodeClass of a file ("-": of in). Other kinds beside it are passed over.
func readClassFile(ctx context.Context, file string, in io.Reader) (*nodeClass, error) {
	opened, file, err := openInput(file, in)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	documents, err := readDocuments(file, opened)
	if err != nil {
		return nil, err
	}
	var classes []document
	for _, d := range documents {
		if d.text("kind") == classKind {
			classes = append(classes, d)
		}
	}
	switch len(classes) {
	case 0:
		return nil, badInput("%s: no document of kind %s", file, classKind)
	case 1:
		return decodeClass(ctx, &classes[0])
	}
	return nil, badInput("%s: documents %d and %d are both of kind %s, give one", file, classes[0].number, classes[1].number, classKind)
}

func decodeClass(ctx context.Context, d *document) (*nodeClass, error) {
	if version := d.text("apiVersion"); version != classResource.GroupVersion().String() {
		return nil, d.at("apiVersion", "%q is not %s", version, classResource.GroupVersion())
	}
	object, err := d.value()
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(object) // as numbers and keys of JSON
	if err != nil {
		return nil, badInput("%s: document %d: %v", d.file, d.number, err)
	}
	object = map[string]any{}
	if err := utiljson.Unmarshal(raw, &object); err != nil { // integers stay integers
		return nil, badInput("%s: document %d: %v", d.file, d.number, err)
	}
	fillIn(object)
	crd, err := nodeClassSchema()
	if err != nil {
		return nil, err
	}
	var wrong []error
	faults := crd.complete(ctx, object)
	slices.SortStableFunc(faults, func(a, b *field.Error) int { return cmp.Compare(d.line(a.Field), d.line(b.Field)) })
	for _, e := range faults {
		wrong = append(wrong, d.at(e.Field, "%s", withoutPath(e)))
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	class := &nodeClass{EC2NodeClass: &awsv1.EC2NodeClass{}, document: d}
	if raw, err = json.Marshal(object); err == nil {
		err = json.Unmarshal(raw, class.EC2NodeClass)
	}
	if err != nil {
		return nil, badInput("%s: document %d, line %d: %v", d.file, d.number, d.root.Line, err)
	}
	return class, nil
}

// withoutPath is the error's text, of which the path was said.
func withoutPath(e *field.Error) string {
	return strings.Replace(strings.TrimPrefix(e.ErrorBody(), "Invalid value: null: "), e.Field+" in body ", "", 1)
}

// fillIn adds what a class must have and no instance type depends on, so that a short file will do.
func fillIn(object map[string]any) {
	if _, ok := object["metadata"]; !ok {
		object["metadata"] = map[string]any{}
	}
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		if object["spec"] != nil {
			return
		}
		spec = map[string]any{}
		object["spec"] = spec
	}
	every := []any{map[string]any{"tags": map[string]any{"*": "*"}}}
	for key, value := range map[string]any{"subnetSelectorTerms": every, "securityGroupSelectorTerms": every} {
		if _, ok := spec[key]; !ok {
			spec[key] = value
		}
	}
	if spec["role"] == nil && spec["instanceProfile"] == nil {
		spec["role"] = "none"
	}
	if spec["amiSelectorTerms"] != nil {
		return
	}
	alias := "al2023@latest"
	if family, ok := spec["amiFamily"].(string); ok {
		alias = strings.ToLower(family) + "@latest"
	}
	if alias == "custom@latest" {
		spec["amiSelectorTerms"] = []any{map[string]any{"id": "ami-0"}}
		return
	}
	spec["amiSelectorTerms"] = []any{map[string]any{"alias": alias}}
}

// readClusterClass reads the object of the name from the cluster.
func readClusterClass(ctx context.Context, client dynamic.Interface, name string) (*nodeClass, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	object, err := client.Resource(classResource).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, badInput("--nodeclass %s: no such file, and the cluster has no %s of that name", name, classKind)
	}
	if err != nil {
		return nil, fmt.Errorf("getting %s %s: %w", classKind, name, err)
	}
	raw, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", classKind, name, err)
	}
	class := &nodeClass{EC2NodeClass: &awsv1.EC2NodeClass{}}
	if err := json.Unmarshal(raw, class.EC2NodeClass); err != nil {
		return nil, badInput("%s %s: %v", classKind, name, err)
	}
	return class, nil
}
