// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// publish records what the state machine has to say about a NodeClaim or a Node; mu is held.
func (p *Provisioner) publish(a lifecycle.Publish) {
	ref := nodeRef(a.Node)
	if a.Claim != "" {
		ref = &v1.ObjectReference{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: a.Claim}
		if c, ok := p.state.Claim(a.Claim); ok {
			ref.UID = c.Object.UID
		}
	}
	p.Recorder.Eventf(ref, nil, a.Type, a.Reason, "Provisioning", "%s", cut(a.Message))
	for i, r := range a.Pods {
		if i == maxTold {
			return
		}
		if pod := p.stored(r.Namespace, r.Name, r.UID); pod != nil {
			p.Recorder.Eventf(pod, ref, a.Type, a.Reason, "Provisioning", "%s", cut(a.Message))
		}
	}
}

// maxTold is how many pods of a claim are told of one thing: one of a ReplicaSet's is enough to understand it.
const maxTold = 100

// nodeRef refers to a Node as kubelets do: by name.
func nodeRef(name string) *v1.ObjectReference {
	return &v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}
