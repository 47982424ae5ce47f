// SPDX-License-Identifier: Apache-2.0

// Package manifests is what users install, as files and embedded. It decides what the product may do in a cluster and
// in AWS, and knows nothing of its code. The end-to-end tests call it, to hold the product to exactly these rules.
package manifests

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"

	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Files are the folders base (kubectl apply -k), examples and iam.
//
//go:embed base examples iam
var Files embed.FS

// Permission is one verb on one resource (with its subresource: nodeclaims/status) that a shipped role grants.
type Permission struct{ Role, APIGroup, Resource, Verb string }

// MayStayUnused are the permissions that no end-to-end case needs, and why they are shipped all the same.
var MayStayUnused = map[Permission]string{}

// Permissions lists what the roles in base/rbac.yaml grant, in their order. What the API server's own roles grant,
// which are only bound there, is not listed.
func Permissions() ([]Permission, error) {
	data, err := Files.ReadFile("base/rbac.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the shipped roles: %w", err)
	}
	documents, err := split(data)
	if err != nil {
		return nil, fmt.Errorf("reading the shipped roles: %w", err)
	}
	var permissions []Permission
	for _, document := range documents {
		// Role and ClusterRole differ only in the field that we do not need; bindings have no rules.
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal(document, &role); err != nil {
			return nil, fmt.Errorf("reading the shipped roles: %w", err)
		}
		for _, rule := range role.Rules {
			permissions = append(permissions, flatten(role.Name, rule)...)
		}
	}
	return permissions, nil
}

func flatten(role string, rule rbacv1.PolicyRule) []Permission {
	var permissions []Permission
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				permissions = append(permissions, Permission{Role: role, APIGroup: group, Resource: resource, Verb: verb})
			}
		}
	}
	return permissions
}

// split returns the YAML documents of a file, without empty ones.
func split(data []byte) ([][]byte, error) {
	var documents [][]byte
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		if json, err := yaml.YAMLToJSON(document); err != nil {
			return nil, err
		} else if !bytes.Equal(bytes.TrimSpace(json), []byte("null")) {
			documents = append(documents, document)
		}
	}
}
