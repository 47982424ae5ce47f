// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"

	"github.com/aws/karpenter-provider-aws/pkg/apis"
	"github.com/spf13/cobra"
)

// newCRDsCommand prints the CRDs that the provisioner reads and writes. They are Karpenter's own, from its provider
// for AWS: those of the core lack the AWS labels in their allow-list.
func newCRDsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "crds",
		Short: "Print Karpenter's CustomResourceDefinitions, to be piped into kubectl apply --server-side -f -",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, crd := range [][]byte{apis.EC2NodeClassCRD, apis.NodePoolCRD, apis.NodeClaimCRD} {
				crd = bytes.TrimPrefix(bytes.TrimSpace(crd), []byte("---\n"))
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "---\n%s\n", crd); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
