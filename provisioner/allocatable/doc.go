// SPDX-License-Identifier: Apache-2.0

// Package allocatable remembers what machines turned out to have, so that a wrong estimate is paid for once.
//
// How much a kubelet leaves to pods is an estimate until a machine of that instance type has booted that image with
// those settings (memory above all: no API tells what the hypervisor keeps). Book.Observe takes what a Node reports,
// Book.Apply puts it into the instance types that the planner is given. Of several machines the least counts. A type that
// nobody has seen yet is believed to fall short as the ones that were seen do, as long as all of them do (kin.go): were
// the estimate wrong for an image as a whole, every type would otherwise be tried in turn, a machine wasted on each.
//
// It must survive a restart, because the machine that taught it goes when no pod fits on it. Book.Encode and Book.Merge
// are a text for an annotation of the EC2NodeClass: that object is read before any of its types is used and patched by
// us anyway, so this takes no rule in RBAC, no further object, no order at start, and it ends with the class. The text is
// bounded (maxEntries); what is lost is measured again.
//
// The package is pure; the provisioner calls it, under its lock.
package allocatable
