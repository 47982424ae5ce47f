// SPDX-License-Identifier: Apache-2.0

package nodeprovisioning

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/jit-scheduler/jit-scheduler/provisioner"
)

const stateKey fwk.StateKey = "PreFilter" + Name

// cycle is what one scheduling cycle knows of the ledger: read once, the same for every node.
type cycle struct {
	// node is the real node that the pod is paired with, "" for most pods.
	node  string
	gates map[string]provisioner.Gate
}

// Clone implements fwk.StateData; it is never written.
func (c *cycle) Clone() fwk.StateData { return c }

// PreFilter reads the ledger. It never answers Skip: Filter must run for every pod.
func (pl *Plugin) PreFilter(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	c := &cycle{node: pl.provisioner.Reservation(pod).Node, gates: pl.provisioner.Gates()}
	state.Write(stateKey, c)
	if c.node == "" {
		return nil, nil
	}
	return &fwk.PreFilterResult{NodeNames: sets.New(c.node)}, nil
}

// PreFilterExtensions implements fwk.PreFilterPlugin.
func (pl *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// cycleOf gives what PreFilter wrote. A PreFilter plugin before ours may have ended the cycle: then the ledger is read
// now.
func (pl *Plugin) cycleOf(state fwk.CycleState, pod *v1.Pod) *cycle {
	if d, err := state.Read(stateKey); err == nil {
		if c, ok := d.(*cycle); ok {
			return c
		}
	}
	return &cycle{node: pl.provisioner.Reservation(pod).Node, gates: pl.provisioner.Gates()}
}
