// SPDX-License-Identifier: Apache-2.0

package nodeprovisioning

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	fwk "k8s.io/kube-scheduler/framework"
)

// Name is the plugin's name in KubeSchedulerConfiguration.
const Name = "NodeProvisioning"

const (
	// PlannedAnnotation marks a Node that exists in the scheduler's cache only: the incoming machine of a NodeClaim.
	PlannedAnnotation = "jit-scheduler.io/planned"
	// HoldAnnotation marks a cordon of ours: the unix time in seconds at which it lapses, or HoldKeep.
	HoldAnnotation = "jit-scheduler.io/hold"
	// HoldKeep says that the cordon has become a person's.
	HoldKeep = "keep"
)

// Plugin is NodeProvisioning for one profile.
type Plugin struct {
	handle      fwk.Handle
	provisioner Provisioner
	args        NodeProvisioningArgs
}

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.FilterPlugin      = &Plugin{}
	_ fwk.PostFilterPlugin  = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
	_ io.Closer             = &Plugin{}
)

// New returns the factory of the plugin. All profiles share the one provisioner.
func New(p Provisioner) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(_ context.Context, obj runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		args, err := DecodeArgs(obj, field.NewPath("pluginConfig").Key(Name).Child("args"))
		if err != nil {
			return nil, err
		}
		return &Plugin{handle: h, provisioner: p, args: args}, nil
	}
}

// Name implements fwk.Plugin.
func (pl *Plugin) Name() string { return Name }

// Close is called by the scheduler when leadership ends, some seconds before the process does; it is passed on to a
// provisioner that wants to know.
func (pl *Plugin) Close() error {
	if c, ok := pl.provisioner.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
