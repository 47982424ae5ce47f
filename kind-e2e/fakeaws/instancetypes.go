// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"slices"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/catalogue"
)

type instanceTypeItem struct {
	InstanceType      string         `xml:"instanceType"`
	CurrentGeneration bool           `xml:"currentGeneration"`
	BareMetal         bool           `xml:"bareMetal"`
	Burstable         bool           `xml:"burstablePerformanceSupported"`
	Hypervisor        string         `xml:"hypervisor,omitempty"`
	UsageClasses      []string       `xml:"supportedUsageClasses>item"`
	Virtualization    []string       `xml:"supportedVirtualizationTypes>item"`
	RootDeviceTypes   []string       `xml:"supportedRootDeviceTypes>item"`
	Architectures     []string       `xml:"processorInfo>supportedArchitectures>item"`
	ClockGHz          float64        `xml:"processorInfo>sustainedClockSpeedInGhz,omitempty"`
	Manufacturer      string         `xml:"processorInfo>manufacturer"`
	VCPUs             int            `xml:"vCpuInfo>defaultVCpus"`
	MemoryMiB         int            `xml:"memoryInfo>sizeInMiB"`
	StorageSupported  bool           `xml:"instanceStorageSupported"`
	Storage           *storageInfo   `xml:"instanceStorageInfo"`
	EBS               ebsInfo        `xml:"ebsInfo"`
	Network           networkInfo    `xml:"networkInfo"`
	GPU               *gpuInfo       `xml:"gpuInfo"`
	Inference         *inferenceInfo `xml:"inferenceAcceleratorInfo"`
	Neuron            *neuronInfo    `xml:"neuronInfo"`
	PlacementGroups   []string       `xml:"placementGroupInfo>supportedStrategies>item"`
	NitroEnclaves     string         `xml:"nitroEnclavesSupport"`
}

type ebsInfo struct {
	Support    string        `xml:"ebsOptimizedSupport"`
	Encryption string        `xml:"encryptionSupport"`
	Optimized  *ebsBandwidth `xml:"ebsOptimizedInfo"`
}

type ebsBandwidth struct {
	MaximumMbps int `xml:"maximumBandwidthInMbps"`
}

type storageInfo struct {
	TotalGB int    `xml:"totalSizeInGB"`
	NVMe    string `xml:"nvmeSupport"`
}

type networkInfo struct {
	MaximumInterfaces int        `xml:"maximumNetworkInterfaces"`
	MaximumCards      int        `xml:"maximumNetworkCards"`
	DefaultCard       int        `xml:"defaultNetworkCardIndex"`
	Cards             []cardItem `xml:"networkCards>item"`
	IPv4PerInterface  int        `xml:"ipv4AddressesPerInterface"`
	IPv6Supported     bool       `xml:"ipv6Supported"`
	ENA               string     `xml:"enaSupport"`
	EFASupported      bool       `xml:"efaSupported"`
	EFA               *efaInfo   `xml:"efaInfo"`
	Encryption        bool       `xml:"encryptionInTransitSupported"`
}

type efaInfo struct {
	Maximum int `xml:"maximumEfaInterfaces"`
}

type cardItem struct {
	Index             int `xml:"networkCardIndex"`
	MaximumInterfaces int `xml:"maximumNetworkInterfaces"`
}

// A type without accelerators has no such element at all: clients take one for a promise.
type gpuInfo struct {
	GPUs []gpuItem `xml:"gpus>item"`
}

type inferenceInfo struct {
	Accelerators []inferenceItem `xml:"accelerators>member"` // the one list that is not of items
}

type neuronInfo struct {
	Devices []neuronItem `xml:"neuronDevices>item"`
}

type gpuItem struct {
	Name         string `xml:"name"`
	Manufacturer string `xml:"manufacturer"`
	Count        int    `xml:"count"`
	MemoryMiB    int    `xml:"memoryInfo>sizeInMiB"`
}

type inferenceItem struct {
	Count        int    `xml:"count"`
	Name         string `xml:"name"`
	Manufacturer string `xml:"manufacturer"`
}

type neuronItem struct {
	Count int    `xml:"count"`
	Name  string `xml:"name"`
	Cores int    `xml:"coreInfo>count"`
}

type describeInstanceTypesReply struct {
	Types     []instanceTypeItem `xml:"instanceTypeSet>item"`
	NextToken string             `xml:"nextToken,omitempty"`
}

func describeInstanceTypes(s *Server, r *request) (any, error) {
	names, filters := r.form.list("InstanceType"), r.form.filters()
	settings := s.Settings()
	for _, name := range names {
		if _, ok := catalogue.Get(name); !ok || slices.Contains(settings.HiddenTypes, name) {
			return nil, errorf("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
		}
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	var found []instanceTypeItem
	for _, it := range catalogue.Types() {
		ok, err := matches(filters, nil, attributes{
			"supported-virtualization-type": virtualizationTypes(it), "processor-info.supported-architecture": architectures(it), "instance-type": {it.Name},
			"current-generation": {boolText(!has(olderGenerations, it))}, "bare-metal": {boolText(it.BareMetal)}, "hypervisor": {it.Hypervisor}, "supported-usage-class": usageClasses(it),
		})
		if err != nil {
			return nil, err
		}
		if ok && (len(names) == 0 || slices.Contains(names, it.Name)) && !slices.Contains(settings.HiddenTypes, it.Name) {
			found = append(found, newInstanceTypeItem(it))
		}
	}
	items, token, err := page(r.form, found, 5, 100, 100)
	return describeInstanceTypesReply{Types: items, NextToken: token}, err
}

func boolText(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

func newInstanceTypeItem(it catalogue.Type) instanceTypeItem {
	item := instanceTypeItem{
		InstanceType: it.Name, CurrentGeneration: !has(olderGenerations, it), BareMetal: it.BareMetal, Burstable: burstable.MatchString(it.Name), Hypervisor: it.Hypervisor,
		UsageClasses: usageClasses(it), Virtualization: virtualizationTypes(it), RootDeviceTypes: []string{"ebs"},
		Architectures: architectures(it), ClockGHz: float64(it.ClockMHz) / 1000, Manufacturer: manufacturers[it.CPUManufacturer],
		VCPUs: it.VCPU, MemoryMiB: it.MemoryMiB, StorageSupported: it.NVMeGB > 0, EBS: ebsInfo{Support: "unsupported", Encryption: "supported"},
		Network: newNetworkInfo(it), PlacementGroups: placementStrategies(it), NitroEnclaves: nitroEnclaves(it),
	}
	if it.NVMeGB > 0 {
		item.Storage = &storageInfo{TotalGB: it.NVMeGB, NVMe: "required"}
	}
	if it.EBSMbps > 0 {
		item.EBS.Support, item.EBS.Optimized = "default", &ebsBandwidth{MaximumMbps: it.EBSMbps}
	}
	if it.GPUManufacturer != "" { // a fraction of a GPU counts as 0
		item.GPU = &gpuInfo{GPUs: []gpuItem{{
			Name: acceleratorName(it.GPUName), Manufacturer: manufacturers[it.GPUManufacturer], Count: it.GPUs, MemoryMiB: it.GPUMemoryMiB,
		}}}
	}
	if it.Accelerators > 0 {
		cores := atoi(it.Resources["aws.amazon.com/neuroncore"]) / max(1, atoi(it.Resources["aws.amazon.com/neuron"]))
		item.Neuron = &neuronInfo{Devices: []neuronItem{{Count: it.Accelerators, Name: acceleratorName(it.AcceleratorName), Cores: cores}}}
	}
	if it.AcceleratorName == "inferentia" {
		item.Inference = &inferenceInfo{Accelerators: []inferenceItem{{Count: it.Accelerators, Name: "Inferentia", Manufacturer: "AWS"}}}
	}
	return item
}

func newNetworkInfo(it catalogue.Type) networkInfo {
	info := networkInfo{
		MaximumInterfaces: it.ENIs, MaximumCards: it.NetworkCards, IPv4PerInterface: it.IPv4PerENI,
		IPv6Supported: true, ENA: enaSupport(it), EFASupported: it.EFA > 0, Encryption: it.EncryptionInTransit,
	}
	if it.EFA > 0 {
		info.EFA = &efaInfo{Maximum: it.EFA}
	}
	others := 0
	if it.NetworkCards > 1 {
		others = (it.ENIs - it.DefaultCardENIs) / (it.NetworkCards - 1)
	}
	for i := range max(1, it.NetworkCards) {
		card := cardItem{Index: i, MaximumInterfaces: others}
		if i == 0 {
			card.MaximumInterfaces = it.DefaultCardENIs
		}
		info.Cards = append(info.Cards, card)
	}
	return info
}

type offeringItem struct {
	InstanceType string `xml:"instanceType"`
	LocationType string `xml:"locationType"`
	Location     string `xml:"location"`
}

type describeOfferingsReply struct {
	Offerings []offeringItem `xml:"instanceTypeOfferingSet>item"`
	NextToken string         `xml:"nextToken,omitempty"`
}

func describeInstanceTypeOfferings(s *Server, r *request) (any, error) {
	kind := orDefault(r.form.get("LocationType"), "region")
	locations := map[string]func(string) string{"availability-zone": func(z string) string { return z }, "availability-zone-id": zoneID}
	name, ok := locations[kind]
	if !ok {
		return nil, errorf("InvalidParameterValue", "Location type '%s' is not supported by this endpoint", kind)
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	filters, settings := r.form.filters(), s.Settings()
	var found []offeringItem
	for _, it := range catalogue.Types() {
		for _, zone := range s.Zones() {
			if !settings.offers(it.Name, zone) {
				continue
			}
			ok, err := matches(filters, nil, attributes{"instance-type": {it.Name}, "location": {name(zone)}})
			if err != nil {
				return nil, err
			}
			if ok {
				found = append(found, offeringItem{InstanceType: it.Name, LocationType: kind, Location: name(zone)})
			}
		}
	}
	items, token, err := page(r.form, found, 5, 1000, 1000)
	return describeOfferingsReply{Offerings: items, NextToken: token}, err
}
