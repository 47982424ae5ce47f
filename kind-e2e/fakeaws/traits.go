// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"regexp"
	"slices"
	"strings"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/catalogue"
)

// What the catalogue does not tell of the types, by family or name, as AWS's own replies have it.
var (
	burstable         = regexp.MustCompile(`^t\d`)
	olderGenerations  = keySet("a1 c1 c3 c4 c5 c6gn d2 i2 m1 m2 m3 m4 m5 m6i r3 r4 r5 r6i t1")
	xenWithENA        = keySet("h1 i3 r4 x1 x1e m4.16xlarge")
	alsoI386          = keySet("c1.medium c3.large m1.small m1.medium t1.micro t2.nano t2.micro t2.small t2.medium")
	alsoParavirtual   = keySet("c1 c3 m1 m2 m3 t1")
	capacityBlocks    = keySet("p4d p4de p5 p5e p5en p6-b200 p6-b300 trn1 trn2")
	withoutSpot       = keySet("hpc6a hpc6id hpc7a hpc7g hpc8a mac-m4 mac-m4max mac-m4pro mac1 mac2 mac2-m1ultra mac2-m2 mac2-m2pro u-3tb1 u-6tb1 u7i-12tb u7i-6tb u7i-8tb u7in-16tb u7in-24tb u7in-32tb t2.nano")
	withoutEnclaves   = keySet("a1 c7gn g4ad g5g im4gn is4gen p6-b200 trn1 trn1n vt1 u-3tb1 u-6tb1 u7i-12tb u7i-6tb u7i-8tb u7in-16tb u7in-24tb u7in-32tb")
	smallWithEnclaves = regexp.MustCompile(`^(c8a|m8a|m8azn|r8a|x8aedz)\.`) // of x86_64, although a core is a vCPU there
)

// manufacturers and acceleratorNames spell the catalogue's names as EC2 does.
var (
	manufacturers    = map[string]string{"intel": "Intel", "amd": "AMD", "aws": "AWS", "apple": "Apple", "nvidia": "NVIDIA", "habana": "Habana", "xilinx": "Xilinx"}
	acceleratorNames = map[string]string{
		"inferentia": "Inferentia", "inferentia2": "Inferentia2", "trainium": "Trainium", "trainium2": "Trainium2",
		"radeon-pro-v520": "Radeon Pro V520", "rtx-pro-server-6000": "RTX PRO Server 6000", "rtx-pro-4500": "RTX PRO 4500", "t4g": "T4g", "gaudi-hl-205": "Gaudi HL-205",
	}
)

func acceleratorName(name string) string {
	return orDefault(acceleratorNames[name], strings.ToUpper(name))
}

// has says whether the type, or its family, is in a set.
func has(set map[string]bool, it catalogue.Type) bool { return set[it.Name] || set[it.Family()] }

func usageClasses(it catalogue.Type) []string {
	classes := []string{onDemand}
	if !has(withoutSpot, it) {
		classes = append(classes, spot)
	}
	if has(capacityBlocks, it) {
		classes = append(classes, "capacity-block")
	}
	return classes
}

func architectures(it catalogue.Type) []string {
	if has(alsoI386, it) {
		return []string{"i386", ec2Arch(it.Arch)}
	}
	return []string{ec2Arch(it.Arch)}
}

func virtualizationTypes(it catalogue.Type) []string {
	if has(alsoParavirtual, it) {
		return []string{"hvm", "paravirtual"}
	}
	return []string{"hvm"}
}

func enaSupport(it catalogue.Type) string {
	switch {
	case it.Hypervisor != "xen":
		return "required"
	case has(xenWithENA, it):
		return "supported"
	}
	return "unsupported"
}

func nitroEnclaves(it catalogue.Type) string {
	least := 4 // an enclave takes a whole core from the machine
	if it.Arch == "arm64" || smallWithEnclaves.MatchString(it.Name) {
		least = 2
	}
	if it.Hypervisor != "nitro" || it.VCPU < least || it.Flex || burstable.MatchString(it.Name) || has(withoutEnclaves, it) || strings.HasPrefix(it.Name, "hpc") {
		return "unsupported"
	}
	return "supported"
}

func placementStrategies(it catalogue.Type) []string {
	strategies := []string{"partition", "spread"}
	if !burstable.MatchString(it.Name) && !it.Flex {
		strategies = slices.Insert(strategies, 0, "cluster")
	}
	return strategies
}
