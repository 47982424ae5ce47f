// SPDX-License-Identifier: Apache-2.0

package fakeaws

import "encoding/base64"

// describeCluster is EKS DescribeCluster for the one cluster of the account.
func describeCluster(s *Server, r *request) (any, error) {
	name := r.params["name"]
	if name != s.opts.ClusterName {
		return nil, errorf("ResourceNotFoundException", "No cluster found for name: %s.", name)
	}
	return map[string]any{"cluster": map[string]any{
		"name": name, "arn": s.clusterARN(), "version": s.opts.ClusterVersion, "status": "ACTIVE", "endpoint": s.opts.Endpoint,
		"certificateAuthority":    map[string]any{"data": base64.StdEncoding.EncodeToString(s.opts.CA)},
		"kubernetesNetworkConfig": map[string]any{"serviceIpv4Cidr": s.opts.ServiceCIDR, "ipFamily": "ipv4"},
		"resourcesVpcConfig":      map[string]any{"vpcId": s.vpc, "clusterSecurityGroupId": s.groups[0].id},
	}}, nil
}

func (s *Server) clusterARN() string {
	return "arn:aws:eks:" + s.opts.Region + ":" + s.opts.AccountID + ":cluster/" + s.opts.ClusterName
}

// getManagedResource is ARC zonal shift for the cluster: enrolled, without any shift.
func getManagedResource(s *Server, r *request) (any, error) {
	arn := r.params["resourceIdentifier"]
	if arn != s.clusterARN() {
		return nil, errorf("ResourceNotFoundException", "Resource %s is not managed", arn)
	}
	weights := map[string]float64{}
	for _, sn := range s.subnets {
		weights[sn.zoneID] = 1
	}
	return map[string]any{"arn": arn, "name": s.opts.ClusterName, "appliedWeights": weights, "zonalShifts": []any{}, "autoshifts": []any{}}, nil
}
