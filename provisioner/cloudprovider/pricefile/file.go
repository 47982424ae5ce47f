// SPDX-License-Identifier: Apache-2.0

package pricefile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

const (
	// APIVersion and Kind of a price file.
	APIVersion = "jit-scheduler.io/v1alpha1"
	Kind       = "PriceFile"

	maxBytes = 1 << 20
	maxRules = 500
)

// File is a price file that was read. nil is one without rules. It never changes.
type File struct {
	rules []rule
	text  []byte
}

// document is a price file as it is written.
type document struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Rules      []ruleSpec `json:"rules"`
}

type ruleSpec struct {
	// Requirements of the offering's labels, all of which must hold; none: every offering.
	Requirements []v1.NodeSelectorRequirement `json:"requirements,omitempty"`
	// Price is USD per hour.
	Price *number `json:"price,omitempty"`
	// PriceAdjustment is a signed percentage (-30%), or a signed amount in USD per hour (-0.01).
	PriceAdjustment *number `json:"priceAdjustment,omitempty"`
}

// number is a number, quoted or not.
type number string

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var s string
		if err := json.UnmarshalCaseSensitivePreserveInts(data, &s); err != nil {
			return err
		}
		*n = number(s)
		return nil
	}
	*n = number(bytes.TrimSpace(data))
	return nil
}

// Load reads a file. The error names the file and the field.
func Load(path string) (*File, error) {
	text, err := read(path)
	if err != nil {
		return nil, err
	}
	f, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("price file %s: %w", path, err)
	}
	return f, nil
}

func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the price file: %w", err)
	}
	if info.Size() > maxBytes || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("reading the price file: %s is no file of at most 1 MiB", path)
	}
	text, err := os.ReadFile(path) //nolint:gosec // the path is the operator's own configuration
	if err != nil {
		return nil, fmt.Errorf("reading the price file: %w", err)
	}
	return text, nil
}

// Parse reads YAML or JSON strictly. The error names every field that is wrong.
func Parse(text []byte) (*File, error) {
	var d document
	if len(text) > maxBytes {
		return nil, errors.New("more than 1 MiB")
	}
	if errs := decodeStrict(text, &d); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	var errs field.ErrorList
	if d.APIVersion != APIVersion {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), d.APIVersion, []string{APIVersion}))
	}
	if d.Kind != Kind {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), d.Kind, []string{Kind}))
	}
	if len(d.Rules) > maxRules {
		return nil, append(errs, field.TooMany(field.NewPath("rules"), len(d.Rules), maxRules)).ToAggregate()
	}
	f := &File{text: text}
	for i := range d.Rules {
		r, ruleErrs := d.Rules[i].rule(field.NewPath("rules").Index(i))
		errs = append(errs, ruleErrs...)
		f.rules = append(f.rules, r)
	}
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return f, nil
}

func decodeStrict(text []byte, into *document) field.ErrorList {
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return field.ErrorList{field.Invalid(nil, "", err.Error())}
	}
	strict, err := json.UnmarshalStrict(data, into)
	if err != nil {
		return field.ErrorList{field.Invalid(nil, "", err.Error())}
	}
	var errs field.ErrorList
	for _, err := range strict {
		var at *field.Path
		if f, ok := errors.AsType[json.FieldError](err); ok {
			at = field.NewPath(f.FieldPath())
		}
		errs = append(errs, field.Forbidden(at, err.Error()))
	}
	return errs
}

// Rules is how many rules there are.
func (f *File) Rules() int {
	if f == nil {
		return 0
	}
	return len(f.rules)
}

// Price is what an offering counts for, in USD per hour: the price that is known of it (known: there is one), changed
// by every rule that holds for it, in the order of the file. label gives the offering's labels. false: it has no price.
func (f *File) Price(label func(key string) (string, bool), price float64, known bool) (float64, bool) {
	if f == nil {
		return price, known
	}
	for i := range f.rules {
		r := &f.rules[i]
		if r.needsPrice() && !known || !r.requirements.MatchesFunc(label) {
			continue
		}
		price, known = max(r.apply(price), least), true
	}
	return price, known
}

// least is what nothing is cheaper than: a price of 0 would make every amount of it equally good.
const least = 0.000001

var operators = []string{
	string(v1.NodeSelectorOpIn), string(v1.NodeSelectorOpNotIn), string(v1.NodeSelectorOpExists), string(v1.NodeSelectorOpDoesNotExist),
	string(v1.NodeSelectorOpGt), string(v1.NodeSelectorOpLt), string(karpv1.NodeSelectorOpGte), string(karpv1.NodeSelectorOpLte),
}

// requirement checks one and reads it. A label that no offering has would never match, in silence.
func requirement(spec v1.NodeSelectorRequirement, path *field.Path) (scheduling.Requirement, field.ErrorList) {
	var errs field.ErrorList
	r := scheduling.NewRequirement(spec.Key, spec.Operator, spec.Values...)
	if !scheduling.WellKnown(r.Key) {
		errs = append(errs, field.Invalid(path.Child("key"), spec.Key, "is no label of an offering, such as karpenter.k8s.aws/instance-family"))
	}
	switch spec.Operator {
	case v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn:
		if len(spec.Values) == 0 {
			errs = append(errs, field.Required(path.Child("values"), "for operator "+string(spec.Operator)))
		}
	case v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist:
		if len(spec.Values) > 0 {
			errs = append(errs, field.Forbidden(path.Child("values"), "for operator "+string(spec.Operator)))
		}
	default:
		if !slices.Contains(operators, string(spec.Operator)) {
			errs = append(errs, field.NotSupported(path.Child("operator"), string(spec.Operator), operators))
		} else if !r.Satisfiable() {
			errs = append(errs, field.Invalid(path.Child("values"), spec.Values, "must be one whole number"))
		}
	}
	if r.Key == karpv1.CapacityTypeLabelKey {
		for i, value := range spec.Values {
			if !slices.Contains(capacityTypes, value) {
				errs = append(errs, field.NotSupported(path.Child("values").Index(i), value, capacityTypes))
			}
		}
	}
	return r, errs
}

var capacityTypes = []string{karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot, karpv1.CapacityTypeReserved}
