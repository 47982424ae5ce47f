// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"
)

// row is a line of a catalogue file. MHz, Mbit/s, MiB, decimal GB and USD per hour; what a type does not have is absent.
type row struct {
	Type                    string            `json:"type"`
	Arch                    string            `json:"arch"` // amd64 or arm64
	VCPU                    *int64            `json:"vcpu"`
	MemoryMiB               *int64            `json:"memoryMiB"`
	OnDemandUSD             float64           `json:"onDemandUSD"`
	ENIs                    *int64            `json:"enis"`
	IPv4PerENI              *int64            `json:"ipv4PerEni"`
	Hypervisor              string            `json:"hypervisor"` // empty: none
	BareMetal               bool              `json:"bareMetal"`
	CPUManufacturer         string            `json:"cpuManufacturer"`
	ClockMHz                int64             `json:"clockMHz"`
	EBSMbps                 int64             `json:"ebsMbps"`
	NetworkMbps             int64             `json:"networkMbps"`
	NVMeGB                  int64             `json:"nvmeGB"`
	GPUs                    int64             `json:"gpus"` // 0 with a manufacturer: a fraction of one
	GPUManufacturer         string            `json:"gpuManufacturer"`
	GPUName                 string            `json:"gpuName"`
	GPUMemoryMiB            int64             `json:"gpuMemoryMiB"`
	Accelerators            int64             `json:"accelerators"`
	AcceleratorName         string            `json:"acceleratorName"`
	AcceleratorManufacturer string            `json:"acceleratorManufacturer"`
	EncryptionInTransit     bool              `json:"encryptionInTransit"`
	Flex                    bool              `json:"flex"` // also in the name
	BranchENIs              int64             `json:"branchEnis"`
	EFA                     int64             `json:"efa"`
	NetworkCards            int64             `json:"networkCards"`
	DefaultCardENIs         *int64            `json:"defaultCardEnis"` // absent: all
	Resources               map[string]string `json:"resources"`       // cores of accelerators are only here
}

// maxCatalogueLine is in bytes.
const maxCatalogueLine = 1 << 20

// ParseListing reads a catalogue file: one JSON object a line, each a type that is sold in all the zones at the price
// that is there, on demand. The error begins with the line number and names the field. warn is told of fields that are
// not known and are ignored, once for each.
func ParseListing(r io.Reader, region string, zones []string, warn func(line int, field string)) (*Listing, error) {
	sold := &catalogue{types: map[string]*hardware{}, zones: map[string][]string{}, prices: prices{onDemand: map[string]float64{}}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxCatalogueLine)
	warned := map[string]bool{}
	n := 0
	for lines.Scan() {
		n++
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		it, unknown, err := parseRow([]byte(text))
		if err == nil && sold.types[it.Type] != nil {
			err = fmt.Errorf("type: %s is there twice", it.Type)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		for _, field := range unknown {
			if !warned[field] {
				warned[field] = true
				warn(n, field)
			}
		}
		info := it.info()
		said := typeLimits{listed: true, networkMbps: it.NetworkMbps, branchENIs: it.BranchENIs}
		if known := limits()[it.Type]; known.listed && known.branchENIs == 0 {
			said.branchENIs = 0
		}
		sold.types[it.Type] = newHardware(&info, region, said)
		sold.zones[it.Type] = zones
		if it.OnDemandUSD > 0 {
			sold.onDemand[it.Type] = it.OnDemandUSD
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if len(sold.types) == 0 {
		return nil, errors.New("line 1: no instance type")
	}
	return &Listing{New(Options{AWS: aws.Config{Region: region}}), sold}, nil
}

// parseRow returns the row and the names of the fields that it does not know.
func parseRow(text []byte) (it row, unknown []string, err error) {
	strict, err := kjson.UnmarshalStrict(text, &it, kjson.DisallowUnknownFields, kjson.DisallowDuplicateFields)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return it, nil, fmt.Errorf("%s: %s where %s is wanted", wrong.Field, wrong.Value, wrong.Type)
	}
	if err != nil {
		return it, nil, fmt.Errorf("not a JSON object of this format: %w", err)
	}
	for _, e := range strict {
		field, ok := errors.AsType[kjson.FieldError](e)
		if !ok || !strings.Contains(e.Error(), "unknown field") {
			return it, nil, e
		}
		unknown = append(unknown, field.FieldPath())
	}
	return it, unknown, it.check()
}

// check finds what no machine can be. int32 is what EC2's API has.
func (it *row) check() error {
	if it.Type == "" {
		return errors.New("type: is required")
	}
	if wrong := validation.IsValidLabelValue(it.Type); len(wrong) > 0 {
		return fmt.Errorf("type: %q is no label value: %s", it.Type, wrong[0])
	}
	if _, ok := architectures[it.Arch]; !ok {
		return fmt.Errorf("arch: %q is not amd64 or arm64", it.Arch)
	}
	for _, number := range []struct {
		field       string
		value       *int64
		least, most int64
	}{
		{"vcpu", it.VCPU, 1, math.MaxInt32},
		{"memoryMiB", it.MemoryMiB, 1, maxAmount / mebibyte},
		{"enis", it.ENIs, 0, math.MaxInt16},
		{"ipv4PerEni", it.IPv4PerENI, 0, math.MaxInt16},
		{"clockMHz", &it.ClockMHz, 0, math.MaxInt32},
		{"ebsMbps", &it.EBSMbps, 0, math.MaxInt32},
		{"networkMbps", &it.NetworkMbps, 0, math.MaxInt32},
		{"nvmeGB", &it.NVMeGB, 0, maxAmount / bytesPerGB},
		{"gpus", &it.GPUs, 0, math.MaxInt32},
		{"gpuMemoryMiB", &it.GPUMemoryMiB, 0, math.MaxInt32},
		{"accelerators", &it.Accelerators, 0, math.MaxInt32},
		{"branchEnis", &it.BranchENIs, 0, math.MaxInt32},
		{"efa", &it.EFA, 0, math.MaxInt16},
		{"networkCards", &it.NetworkCards, 0, math.MaxInt16},
	} {
		switch {
		case number.value == nil:
			return fmt.Errorf("%s: is required", number.field)
		case *number.value < number.least || *number.value > number.most:
			return fmt.Errorf("%s: %d is not between %d and %d", number.field, *number.value, number.least, number.most)
		}
	}
	if it.DefaultCardENIs == nil {
		it.DefaultCardENIs = it.ENIs
	}
	if *it.DefaultCardENIs < 0 || *it.DefaultCardENIs > *it.ENIs {
		return fmt.Errorf("defaultCardEnis: %d is not between 0 and enis, %d", *it.DefaultCardENIs, *it.ENIs)
	}
	if it.OnDemandUSD < 0 || math.IsInf(it.OnDemandUSD, 0) {
		return fmt.Errorf("onDemandUSD: %v is no price", it.OnDemandUSD)
	}
	for name, text := range it.Resources {
		if _, err := parseAmount(text); err != nil {
			return fmt.Errorf("resources[%s]: %w", name, err)
		}
	}
	return nil
}

// info is the row as EC2 would describe it.
func (it *row) info() ec2types.InstanceTypeInfo {
	info := ec2types.InstanceTypeInfo{
		InstanceType:          ec2types.InstanceType(it.Type),
		SupportedUsageClasses: []ec2types.UsageClassType{ec2types.UsageClassTypeOnDemand}, // a file has no spot prices
		BareMetal:             aws.Bool(it.BareMetal),
		Hypervisor:            ec2types.InstanceTypeHypervisor(it.Hypervisor),
		VCpuInfo:              &ec2types.VCpuInfo{DefaultVCpus: int32Of(*it.VCPU)},
		MemoryInfo:            &ec2types.MemoryInfo{SizeInMiB: it.MemoryMiB},
		ProcessorInfo: &ec2types.ProcessorInfo{
			Manufacturer: &it.CPUManufacturer, SustainedClockSpeedInGhz: aws.Float64(float64(it.ClockMHz) / 1000),
			SupportedArchitectures: []ec2types.ArchitectureType{architectures[it.Arch]},
		},
		NetworkInfo: &ec2types.NetworkInfo{
			MaximumNetworkInterfaces: int32Of(*it.ENIs), Ipv4AddressesPerInterface: int32Of(*it.IPv4PerENI), DefaultNetworkCardIndex: aws.Int32(0),
			EncryptionInTransitSupported: &it.EncryptionInTransit,
			NetworkCards:                 []ec2types.NetworkCardInfo{{NetworkCardIndex: aws.Int32(0), MaximumNetworkInterfaces: int32Of(*it.DefaultCardENIs)}},
		},
	}
	if it.EFA > 0 {
		info.NetworkInfo.EfaInfo = &ec2types.EfaInfo{MaximumEfaInterfaces: int32Of(it.EFA)}
	}
	if it.NVMeGB > 0 {
		info.InstanceStorageInfo = &ec2types.InstanceStorageInfo{NvmeSupport: ec2types.EphemeralNvmeSupportRequired, TotalSizeInGB: &it.NVMeGB}
	}
	if it.EBSMbps > 0 {
		info.EbsInfo = &ec2types.EbsInfo{
			EbsOptimizedSupport: ec2types.EbsOptimizedSupportDefault, EbsOptimizedInfo: &ec2types.EbsOptimizedInfo{MaximumBandwidthInMbps: int32Of(it.EBSMbps)},
		}
	}
	if it.GPUManufacturer != "" {
		info.GpuInfo = &ec2types.GpuInfo{Gpus: []ec2types.GpuDeviceInfo{{
			Count: int32Of(it.GPUs), Manufacturer: aws.String(makerOfGPUs(it.GPUManufacturer)), Name: &it.GPUName,
			MemoryInfo: &ec2types.GpuDeviceMemoryInfo{SizeInMiB: int32Of(it.GPUMemoryMiB)},
		}}}
	}
	it.accelerators(&info)
	return info
}

// accelerators are Neuron devices if AWS makes them.
func (it *row) accelerators(info *ec2types.InstanceTypeInfo) {
	switch {
	case it.Accelerators == 0:
	case !strings.EqualFold(it.AcceleratorManufacturer, "aws"):
		info.InferenceAcceleratorInfo = &ec2types.InferenceAcceleratorInfo{Accelerators: []ec2types.InferenceDeviceInfo{{
			Count: int32Of(it.Accelerators), Name: &it.AcceleratorName, Manufacturer: &it.AcceleratorManufacturer,
		}}}
	default:
		cores, _ := parseAmount(it.Resources[string(awsv1.ResourceAWSNeuronCore)]) // it was checked; none is 0
		info.NeuronInfo = &ec2types.NeuronInfo{NeuronDevices: []ec2types.NeuronDeviceInfo{{
			Count: int32Of(it.Accelerators), Name: &it.AcceleratorName,
			CoreInfo: &ec2types.NeuronDeviceCoreInfo{Count: int32Of(cores.Value() / it.Accelerators)},
		}}}
	}
}

// architectures are EC2's names of those that a file may have.
var architectures = map[string]ec2types.ArchitectureType{"amd64": ec2types.ArchitectureTypeX8664, "arm64": ec2types.ArchitectureTypeArm64}

// makerOfGPUs spells a manufacturer as EC2 does.
func makerOfGPUs(name string) string {
	makers := []string{makerNVIDIA, makerAMD, makerHabana}
	if i := slices.IndexFunc(makers, func(maker string) bool { return strings.EqualFold(maker, name) }); i >= 0 {
		return makers[i]
	}
	return name
}

func int32Of(n int64) *int32 { return aws.Int32(int32(max(0, min(math.MaxInt32, n)))) }
