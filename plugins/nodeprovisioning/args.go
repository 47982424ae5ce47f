// SPDX-License-Identifier: Apache-2.0

package nodeprovisioning

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// MaxLaunchWait is the longest launchWait: nothing else is scheduled meanwhile.
const MaxLaunchWait = 10 * time.Second

// NodeProvisioningArgs are the plugin's arguments in KubeSchedulerConfiguration. The provisioner is one for all
// profiles, so all profiles must give the same values but for launchWait.
type NodeProvisioningArgs struct {
	metav1.TypeMeta `json:",inline"`

	// LaunchWait is how long PostFilter waits for the launch's answer, so that a launch error is in the same event.
	// 0 (default): the scheduling thread does no I/O. At most 10s.
	LaunchWait metav1.Duration `json:"launchWait"`
	// ClusterName is the EKS cluster's name. It can be given by --cluster-name or $CLUSTER_NAME instead.
	ClusterName string `json:"clusterName,omitempty"`
	// ClusterEndpoint is the API server's URL for new machines; default: what DescribeCluster says.
	ClusterEndpoint string `json:"clusterEndpoint,omitempty"`
	// Region is the AWS region; default: that of the SDK's own chain.
	Region string `json:"region,omitempty"`
	// Endpoint overrides the AWS endpoint of every service; default: that of the SDK's own chain.
	Endpoint string `json:"endpoint,omitempty"`
	// PriceFile is the path of a file with prices and discounts that AWS does not tell; it is read again when it
	// changes. Default: none.
	PriceFile string `json:"priceFile,omitempty"`
	// IsolatedVPC says that only AWS services with an endpoint in the VPC can be reached: the price list service, which
	// has none, is not asked, and built-in on-demand prices are used.
	IsolatedVPC bool `json:"isolatedVPC,omitempty"`
}

// DecodeArgs decodes strictly what the configuration has for the plugin (nil: nothing), sets defaults and validates.
// Errors name the field below path.
func DecodeArgs(obj runtime.Object, path *field.Path) (NodeProvisioningArgs, error) {
	var args NodeProvisioningArgs
	switch o := obj.(type) {
	case nil:
	case *runtime.Unknown:
		if errs := decodeStrict(o.Raw, &args, path); len(errs) > 0 {
			return args, errs.ToAggregate()
		}
	default:
		return args, fmt.Errorf("%s: want NodeProvisioningArgs, got %T", path, obj)
	}
	return args, args.validate(path).ToAggregate()
}

// decodeStrict decodes YAML or JSON and names what it does not know.
func decodeStrict(raw []byte, args *NodeProvisioningArgs, path *field.Path) field.ErrorList {
	text, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return field.ErrorList{field.Invalid(path, string(raw), err.Error())}
	}
	strict, err := json.UnmarshalStrict(text, args)
	if err != nil {
		return field.ErrorList{field.Invalid(path, string(text), err.Error())}
	}
	var errs field.ErrorList
	for _, err := range strict {
		at := path
		if f, ok := errors.AsType[json.FieldError](err); ok {
			at = path.Child(f.FieldPath())
		}
		errs = append(errs, field.Forbidden(at, err.Error()))
	}
	return errs
}

func (a *NodeProvisioningArgs) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if w := a.LaunchWait.Duration; w < 0 || w > MaxLaunchWait {
		errs = append(errs, field.Invalid(path.Child("launchWait"), w.String(), "must be between 0s and "+MaxLaunchWait.String()))
	}
	if a.Kind != "" && a.Kind != "NodeProvisioningArgs" {
		errs = append(errs, field.NotSupported(path.Child("kind"), a.Kind, []string{"NodeProvisioningArgs"}))
	}
	for name, value := range map[string]string{"endpoint": a.Endpoint, "clusterEndpoint": a.ClusterEndpoint} {
		if value == "" {
			continue
		}
		if u, err := url.Parse(value); err != nil || u.Scheme == "" || u.Host == "" {
			errs = append(errs, field.Invalid(path.Child(name), value, "must be an absolute URL"))
		}
	}
	return errs
}
