// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"
)

// kustomization is the part of kustomize's file that is used here; strict decoding refuses any other field.
type kustomization struct {
	metav1.TypeMeta `json:",inline"`
	Namespace       string   `json:"namespace"`
	Resources       []string `json:"resources"`
	Generators      []struct {
		Name     string   `json:"name"`
		Behavior string   `json:"behavior"`
		Files    []string `json:"files"`
		Literals []string `json:"literals"`
	} `json:"configMapGenerator"`
	Images []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
	} `json:"images"`
	Labels []struct {
		Pairs map[string]string `json:"pairs"`
	} `json:"labels"`
}

// prototypes are the types that a file may hold, by apiVersion and kind.
var prototypes = map[string]func() any{
	"v1/ServiceAccount":                                         func() any { return new(v1.ServiceAccount) },
	"v1/Service":                                                func() any { return new(v1.Service) },
	"apps/v1/Deployment":                                        func() any { return new(appsv1.Deployment) },
	"policy/v1/PodDisruptionBudget":                             func() any { return new(policyv1.PodDisruptionBudget) },
	"rbac.authorization.k8s.io/v1/ClusterRole":                  func() any { return new(rbacv1.ClusterRole) },
	"rbac.authorization.k8s.io/v1/ClusterRoleBinding":           func() any { return new(rbacv1.ClusterRoleBinding) },
	"rbac.authorization.k8s.io/v1/Role":                         func() any { return new(rbacv1.Role) },
	"rbac.authorization.k8s.io/v1/RoleBinding":                  func() any { return new(rbacv1.RoleBinding) },
	"karpenter.sh/v1/NodePool":                                  func() any { return new(karpv1.NodePool) },
	"karpenter.k8s.aws/v1/EC2NodeClass":                         func() any { return new(awsv1.EC2NodeClass) },
	"kubescheduler.config.k8s.io/v1/KubeSchedulerConfiguration": func() any { return new(kubeschedulerv1.KubeSchedulerConfiguration) },
	"kustomize.config.k8s.io/v1beta1/Kustomization":             func() any { return new(kustomization) },
}

// TestFilesDecodeStrictly also finds a misspelt field and a file in a format that nothing checks.
func TestFilesDecodeStrictly(t *testing.T) {
	t.Parallel()
	for file, objects := range decodeAll(t) {
		if len(objects) == 0 {
			t.Errorf("%s is empty", file)
		}
	}
}

// TestKustomizationsNameEveryFile finds a file that nobody would notice is not installed.
func TestKustomizationsNameEveryFile(t *testing.T) {
	t.Parallel()
	files := decodeAll(t)
	named := map[string]bool{}
	for file, objects := range files {
		k, ok := objects[0].(*kustomization)
		if !ok {
			continue
		}
		named[file] = true
		listed := slices.Clone(k.Resources)
		for _, generator := range k.Generators {
			listed = append(listed, generator.Files...)
		}
		for _, name := range listed {
			target := path.Join(path.Dir(file), name)
			if _, err := fs.Stat(Files, target); err != nil {
				t.Errorf("%s names %s: %v", file, name, err)
			}
			named[target] = true
		}
	}
	for file := range files {
		if !named[file] {
			t.Errorf("no kustomization names %s", file)
		}
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	permissions, err := Permissions()
	if err != nil {
		t.Fatal(err)
	}
	if want := (Permission{Role: "jit-scheduler", APIGroup: "karpenter.sh", Resource: "nodeclaims/status", Verb: "patch"}); !slices.Contains(permissions, want) {
		t.Errorf("Permissions() lacks %v", want)
	}
	for _, p := range permissions {
		if strings.Contains(p.APIGroup+p.Resource+p.Verb, "*") {
			t.Errorf("%v is a wildcard", p)
		}
		// NodePools, classes and Nodes belong to others; an update would undo what they wrote meanwhile.
		if p.Verb == "update" && p.Resource != "leases" {
			t.Errorf("%v: only patches, but for the lease", p)
		}
		if p.Resource == "secrets" || p.Resource == "configmaps" || p.Verb == "escalate" || p.Verb == "impersonate" || p.Verb == "bind" {
			t.Errorf("%v is nothing that scheduling needs", p)
		}
	}
	for p, reason := range MayStayUnused {
		if !slices.Contains(permissions, p) || reason == "" {
			t.Errorf("%v is excused (%q) but not shipped, or without a reason", p, reason)
		}
	}
}

// TestBindings: roles that the product is bound to, and nobody but its own account.
func TestBindings(t *testing.T) {
	t.Parallel()
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "jit-scheduler", Namespace: metav1.NamespaceSystem}
	var bound []string
	for _, object := range decodeAll(t)["base/rbac.yaml"] {
		var subjects []rbacv1.Subject
		switch o := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			subjects, bound = o.Subjects, append(bound, o.RoleRef.Name)
		case *rbacv1.RoleBinding:
			subjects, bound = o.Subjects, append(bound, o.RoleRef.Name)
		default:
			continue
		}
		if !slices.Equal(subjects, []rbacv1.Subject{account}) {
			t.Errorf("%T binds %v, want only %v", object, subjects, account)
		}
	}
	slices.Sort(bound)
	want := []string{
		"extension-apiserver-authentication-reader", "jit-scheduler", "jit-scheduler:leader-election",
		"system:kube-scheduler", "system:volume-scheduler",
	}
	if !slices.Equal(bound, want) {
		t.Errorf("bound to %q, want %q", bound, want)
	}
}

// decodeAll decodes every YAML document of Files strictly, by file. None is without one.
func decodeAll(t *testing.T) map[string][]any {
	t.Helper()
	objects := map[string][]any{}
	err := fs.WalkDir(Files, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(file) != ".yaml" {
			return err
		}
		data, err := Files.ReadFile(file)
		if err != nil {
			return err
		}
		documents, err := split(data)
		if err != nil {
			return err
		}
		for _, document := range documents {
			objects[file] = append(objects[file], decode(t, file, document))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func decode(t *testing.T, file string, document []byte) any {
	t.Helper()
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(document, &meta); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	prototype, ok := prototypes[meta.APIVersion+"/"+meta.Kind]
	if !ok {
		t.Fatalf("%s: no test knows %s %s", file, meta.APIVersion, meta.Kind)
	}
	object := prototype()
	if err := yaml.UnmarshalStrict(document, object); err != nil {
		t.Fatalf("%s: %s: %v", file, meta.Kind, err)
	}
	return object
}

// only returns the one object of a type in a file.
func only[T any](t *testing.T, file string) T {
	t.Helper()
	for _, object := range decodeAll(t)[file] {
		if o, ok := object.(T); ok {
			return o
		}
	}
	var none T
	t.Fatalf("%s has no %T", file, none)
	return none
}
