// SPDX-License-Identifier: Apache-2.0

// Package ec2 is the AWS adapter of cloudprovider.Interface: it reads what EC2 sells and what an EC2NodeClass selects,
// and launches, finds and ends instances. It decides which AWS calls carry out a request, and which of AWS's answers
// mean what; it must not decide what to buy, when, or for which pod. The provisioner's event loop calls it.
//
// Nothing runs between calls: what is kept (catalogue, classes, launch templates, offerings that had no capacity) is
// refreshed by Resolve and read from memory by InstanceTypes and Launch. No lock is held during a call to AWS. Every
// call has a deadline of its own besides the caller's. User data, credentials and the cluster's CA are never logged.
package ec2
