// SPDX-License-Identifier: Apache-2.0

// Package fakeaws is an AWS endpoint that behaves: unmodified AWS SDKs talk to it, instances start,
// boot, join the cluster that their user data names, and go. It decides what AWS would answer; it
// must know nothing that did not come over the AWS API (except how to reach API servers as a
// kubelet), and imports nothing of the product. Tests serve it in process, also inside a
// testing/synctest bubble; kind-e2e/cmd/fakeaws serves it over HTTP.
//
// In a test:
//
//	s := fakeaws.New(fakeaws.Options{NodeClient: …})
//	defer s.Close()
//	client := ec2.NewFromConfig(s.AWSConfig("AK1")) // the real SDK, no sockets
//	s.SetFault(fakeaws.Rule{Action: "CreateFleet", Zone: "us-east-1a", PerPool: true, Code: "InsufficientInstanceCapacity"})
//
// Over HTTP the same is reached under /_fake/: calls, instances, launch-templates, prices, faults,
// settings, healthz.
//
// Times come from package time alone, so a bubble drives them. Every goroutine ends with Close.
package fakeaws
