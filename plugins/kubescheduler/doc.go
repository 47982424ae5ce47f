// SPDX-License-Identifier: Apache-2.0

// Package kubescheduler is the one adapter between the provisioner and k8s.io/kubernetes/pkg/scheduler: outside of cmd
// no other package imports k8s.io/kubernetes.
//
// Adapter owns what we put into the scheduler's cache and queue (planned nodes, parked pods), wraps the scheduler's
// NextEntity, SchedulePod, Cache and Extenders, and makes Filter oracles for the planner. It decides nothing about
// capacity: the provisioner's ledger says who belongs where.
//
// Locks are taken in the order provisioner, Adapter, scheduler queue, scheduler cache. The Adapter never calls the
// provisioner with its own lock held, and asks it on the scheduling thread only.
package kubescheduler
