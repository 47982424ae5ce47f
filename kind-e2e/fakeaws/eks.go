// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/base64"
	"slices"
	"strings"
	"time"
)

// describeCluster is EKS DescribeCluster for the one cluster of the account.
func describeCluster(s *Server, r *request) (any, error) {
	name := r.params["name"]
	if name != s.opts.ClusterName {
		return nil, errorf("ResourceNotFoundException", "No cluster found for name: %s.", name)
	}
	return map[string]any{"cluster": map[string]any{
		"name": name, "arn": s.clusterARN(), "version": s.opts.ClusterVersion, "status": "ACTIVE", "endpoint": s.opts.Endpoint,
		"certificateAuthority":    map[string]any{"data": base64.StdEncoding.EncodeToString(s.opts.CA)},
		"kubernetesNetworkConfig": serviceNetwork(s.opts.ServiceCIDR),
		"resourcesVpcConfig":      map[string]any{"vpcId": s.vpc, "clusterSecurityGroupId": s.groups[0].id},
	}}, nil
}

func serviceNetwork(cidr string) map[string]any {
	if strings.Contains(cidr, ":") {
		return map[string]any{"serviceIpv6Cidr": cidr, "ipFamily": "ipv6"}
	}
	return map[string]any{"serviceIpv4Cidr": cidr, "ipFamily": "ipv4"}
}

func (s *Server) clusterARN() string {
	return "arn:aws:eks:" + s.opts.Region + ":" + s.opts.AccountID + ":cluster/" + s.opts.ClusterName
}

// getManagedResource is ARC zonal shift for the cluster: enrolled, with the shifts of the settings.
func getManagedResource(s *Server, r *request) (any, error) {
	arn := r.params["resourceIdentifier"]
	if arn != s.clusterARN() {
		return nil, errorf("ResourceNotFoundException", "Resource %s is not managed", arn)
	}
	weights, shifts := map[string]float64{}, []any{}
	away, now := s.Settings().ZonalShifts, time.Now()
	for _, sn := range s.subnets {
		weights[sn.zoneID] = 1
		if slices.Contains(away, sn.zoneID) {
			weights[sn.zoneID] = 0
		}
	}
	for _, zone := range away {
		shifts = append(shifts, map[string]any{
			"appliedStatus": "APPLIED", "awayFrom": zone, "resourceIdentifier": arn, "shiftIdentifier": "shift-" + zone,
			"startTime": now.Add(-time.Minute).Unix(), "expiryTime": now.Add(time.Hour).Unix(), "comment": "",
		})
	}
	return map[string]any{"arn": arn, "name": s.opts.ClusterName, "appliedWeights": weights, "zonalShifts": shifts, "autoshifts": []any{}}, nil
}
