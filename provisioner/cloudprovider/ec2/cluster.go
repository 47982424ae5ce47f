// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"k8s.io/klog/v2"
)

const clusterTTL = 5 * time.Minute

// clusterFacts are what a machine and its image need to know of the cluster.
type clusterFacts struct {
	endpoint    string
	ca          string // base64 of a PEM bundle
	serviceCIDR string
	version     string // major.minor
	readAt      time.Time
}

func (p *Provider) configuredCluster() *clusterFacts {
	o := p.opts
	return &clusterFacts{endpoint: o.ClusterEndpoint, ca: o.ClusterCA, serviceCIDR: o.ServiceCIDR, version: o.KubernetesVersion}
}

func (c *clusterFacts) complete() bool {
	return c.endpoint != "" && c.ca != "" && c.serviceCIDR != "" && c.version != ""
}

// clusterFacts reads the cluster when what is known of it is old. The caller holds p.refreshing. If EKS does not
// answer, the old facts stay in use.
func (p *Provider) refreshCluster(ctx context.Context) (*clusterFacts, error) {
	p.mu.Lock()
	known := p.cluster
	p.mu.Unlock()
	if known != nil && time.Since(known.readAt) < clusterTTL {
		return known, nil
	}
	facts := p.configuredCluster()
	if !facts.complete() {
		out, err := call(ctx, "describing the cluster", p.eks.DescribeCluster, &eks.DescribeClusterInput{Name: &p.opts.ClusterName})
		if err == nil && out.Cluster == nil {
			err = errors.New("describing the cluster: empty answer")
		}
		if err != nil {
			if known != nil {
				klog.FromContext(ctx).Error(err, "Using what is known of the cluster", "cluster", p.opts.ClusterName)
				return known, nil
			}
			return nil, err
		}
		facts.endpoint = cmp.Or(facts.endpoint, aws.ToString(out.Cluster.Endpoint))
		facts.version = cmp.Or(facts.version, aws.ToString(out.Cluster.Version))
		if authority := out.Cluster.CertificateAuthority; authority != nil {
			facts.ca = cmp.Or(facts.ca, aws.ToString(authority.Data))
		}
		if network := out.Cluster.KubernetesNetworkConfig; network != nil {
			facts.serviceCIDR = cmp.Or(facts.serviceCIDR, aws.ToString(network.ServiceIpv4Cidr), aws.ToString(network.ServiceIpv6Cidr))
		}
	}
	facts.readAt = time.Now()
	p.mu.Lock()
	p.cluster = facts
	p.mu.Unlock()
	return facts, nil
}
