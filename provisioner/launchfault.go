// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"time"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// faultLookAfter is when a class is resolved again that a launch has shown to be at fault: the adapter believes it a
// little shorter.
const faultLookAfter = 2*time.Minute + time.Second

// launchRefused has launchWait hear of a refusal while the launch goes on being tried, and the class say what is wrong
// with it.
func (p *Provisioner) launchRefused(a lifecycle.Launch, failed lifecycle.LaunchFailed) {
	if failed.Failure != cloudprovider.NodeClassNotReady {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range a.Claims {
		p.failures[c.Name] = failed.Message
	}
	ref := a.Claims[0].Spec.NodeClassRef
	if ref == nil || p.ctx == nil || p.classes[ref.Name] == nil {
		return
	}
	st := p.classes[ref.Name]
	st.now()
	timer := time.AfterFunc(faultLookAfter, st.now)
	context.AfterFunc(p.ctx, func() { timer.Stop() })
}

// launchAccepted has a class that was at fault look again: its launches succeed.
func (p *Provisioner) launchAccepted(a lifecycle.Launch, class string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range a.Claims {
		delete(p.failures, c.Name)
	}
	if st := p.classes[class]; st != nil && st.resolved != nil && !st.resolved.StatusConditions().Root().IsTrue() {
		st.now()
	}
}
