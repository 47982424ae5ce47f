// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	awsapis "github.com/aws/karpenter-provider-aws/pkg/apis"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// crdSchema answers as an API server with the CRD would, so that a file is judged as on kubectl apply.
type crdSchema struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

func nodeClassSchema() (*crdSchema, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(awsapis.EC2NodeClassCRD, &crd); err != nil {
		return nil, fmt.Errorf("reading the CRD: %w", err)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, fmt.Errorf("converting the CRD: %w", err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return nil, fmt.Errorf("reading the CRD's schema: %w", err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, fmt.Errorf("reading the CRD's schema: %w", err)
	}
	return &crdSchema{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// complete applies defaults and returns what is wrong with the object. Fields that the schema does not know are wrong.
func (s *crdSchema) complete(ctx context.Context, object map[string]any) field.ErrorList {
	var wrong field.ErrorList
	unknown := pruning.PruneWithOptions(object, s.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		wrong = append(wrong, field.Invalid(field.NewPath(path), nil, "unknown field"))
	}
	defaulting.Default(object, s.structural)
	if invalid := validation.ValidateCustomResource(nil, object, s.validator); len(invalid) > 0 {
		return append(wrong, invalid...) // the rules assume that types are right
	}
	broken, _ := s.rules.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return append(wrong, broken...)
}
