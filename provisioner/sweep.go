// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

const (
	sweepEvery = 30 * time.Second
	// templateUnused is how long a launch template outlives its last use; with sweepEvery it stays within the two
	// minutes that users are promised.
	templateUnused = time.Minute
	// orphanAge spares machines whose NodeClaim may not be known yet: a launch answers within a minute or two.
	orphanAge = 3 * time.Minute
)

// sweep ends what nobody needs: machines without a NodeClaim, and unused launch templates.
func (p *Provisioner) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := p.sweepOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		said = sayOnce(klog.FromContext(ctx), said, err)
	}
}

// sayOnce logs a failure of the sweep when it differs from the last one, and that it is over; it returns what was said.
func sayOnce(logger klog.Logger, said string, err error) string {
	switch {
	case err == nil && said != "":
		logger.Info("Sweeping works again")
	case err == nil:
	case withoutIDs(err.Error()) != said:
		logger.Error(err, "Sweeping failed, will be repeated", "every", sweepEvery)
	}
	if err == nil {
		return ""
	}
	return withoutIDs(err.Error())
}

// requestID is another one in every answer of AWS.
var requestID = regexp.MustCompile(`(?i)request ?id: [^,\s]+`)

func withoutIDs(s string) string { return requestID.ReplaceAllString(s, "") }

func (p *Provisioner) sweepOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	p.mu.Lock()
	synced := p.synced
	p.mu.Unlock()
	if !synced || p.Ready() != nil {
		return nil
	}
	asked := time.Now()
	instances, err := p.Cloud.List(ctx)
	if err != nil {
		return err
	}
	errs := []error{p.reportGone(ctx, p.unlisted(instances, asked))}
	leaked, err := p.unclaimed(ctx, p.orphans(instances))
	errs = append(errs, err, p.terminateLeaked(ctx, leaked))
	if err := p.Leading(); err != nil {
		return err
	}
	return errors.Join(append(errs, p.Cloud.Sweep(ctx, templateUnused))...)
}

// unlisted are the claims' machines that the cloud does not list although their launch is long past.
func (p *Provisioner) unlisted(instances []cloudprovider.Instance, asked time.Time) []string {
	live := sets.New[string]()
	for i := range instances {
		live.Insert(instances[i].ProviderID)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for c := range p.state.Claims() {
		if c.Launched && !live.Has(c.ProviderID) && asked.Sub(c.LaunchedAt) > orphanAge {
			out = append(out, c.ProviderID)
		}
	}
	return out
}

// reportGone tells the state machine of machines that ended without our doing. Each is asked for by its id before: a
// list lacks what has lost its tags, or what this region's copy of the truth does not show yet, and to believe it would
// take the node from under running pods.
func (p *Provisioner) reportGone(ctx context.Context, unlisted []string) error {
	var errs []error
	for _, id := range unlisted {
		_, err := p.Cloud.Get(ctx, id)
		if errors.Is(err, cloudprovider.ErrInstanceNotFound) {
			p.apply(lifecycle.InstanceGone{ProviderID: id})
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// orphans are instances of this cluster that no NodeClaim has or is waiting for, as far as is known here.
func (p *Provisioner) orphans(instances []cloudprovider.Instance) []cloudprovider.Instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, groups := sets.New[string](), sets.New[string]()
	for c := range p.state.Claims() {
		known.Insert(machineID(c.ProviderID))
		if !c.Launched {
			groups.Insert(c.Group)
		}
	}
	for id := range p.foreign {
		known.Insert(machineID(id))
	}
	for _, c := range p.undecided {
		groups.Insert(c.Annotations[lifecycle.GroupAnnotation])
	}
	var out []cloudprovider.Instance
	for _, inst := range instances {
		switch {
		case !p.ofThisCluster(&inst), inst.State == "shutting-down", known.Has(machineID(inst.ProviderID)),
			groups.Has(inst.Tags[lifecycle.GroupAnnotation]), time.Since(inst.LaunchTime) <= orphanAge:
		default:
			out = append(out, inst)
		}
	}
	return out
}

// ofThisCluster asks for all the tags that a launch writes, whatever the cloud was asked to list.
func (p *Provisioner) ofThisCluster(inst *cloudprovider.Instance) bool {
	return inst.Tags["kubernetes.io/cluster/"+p.ClusterName] == "owned" && inst.Tags[awsv1.EKSClusterNameTagKey] == p.ClusterName &&
		inst.Tags[awsv1.NodePoolTagKey] != "" && inst.Tags[awsv1.NodeClassTagKey] != ""
}

// machineID is the last part of a provider id: nothing else of it tells two machines apart.
func machineID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// unclaimed are those of the instances that no NodeClaim in the cluster has or waits for. It asks the API server itself,
// and after the cloud was asked: an informer may not have told yet of a claim that another leader, or a person, made.
func (p *Provisioner) unclaimed(ctx context.Context, instances []cloudprovider.Instance) ([]cloudprovider.Instance, error) {
	if len(instances) == 0 {
		return nil, nil
	}
	list, err := p.Dynamic.Resource(nodeClaims).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	known, groups, names := sets.New[string](), sets.New[string](), sets.New[string]()
	for i := range list.Items {
		claim := &list.Items[i]
		id, _, err := unstructured.NestedString(claim.Object, "status", "providerID")
		if err != nil {
			return nil, fmt.Errorf("reading NodeClaim %s: %w", claim.GetName(), err)
		}
		if id != "" {
			known.Insert(machineID(id))
			continue
		}
		names.Insert(claim.GetName())
		if group := claim.GetAnnotations()[lifecycle.GroupAnnotation]; group != "" {
			groups.Insert(group)
		}
	}
	return slices.DeleteFunc(instances, func(inst cloudprovider.Instance) bool {
		return known.Has(machineID(inst.ProviderID)) || groups.Has(inst.Tags[lifecycle.GroupAnnotation]) || names.Has(inst.Tags[awsv1.NodeClaimTagKey])
	}), nil
}

// maxTerminations are in flight together; the adapter makes few calls of them.
const maxTerminations = 100

func (p *Provisioner) terminateLeaked(ctx context.Context, instances []cloudprovider.Instance) error {
	var group errgroup.Group
	group.SetLimit(maxTerminations)
	errs := make([]error, len(instances))
	for i, inst := range instances {
		group.Go(func() error {
			if errs[i] = p.Leading(); errs[i] != nil {
				return nil
			}
			klog.FromContext(ctx).Info("Terminating an instance without a NodeClaim", "providerID", inst.ProviderID,
				"nodePool", inst.Tags[awsv1.NodePoolTagKey], "launched", inst.LaunchTime)
			if err := p.Cloud.Terminate(ctx, inst.ProviderID); !errors.Is(err, cloudprovider.ErrInstanceNotFound) {
				errs[i] = err
			}
			return nil
		})
	}
	_ = group.Wait() // each has its own error
	return errors.Join(errs...)
}
