// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"bytes"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

// dnsOffset is the place of the cluster DNS service in the service CIDR of an EKS cluster.
const dnsOffset = 10

// table is a TOML table.
type table = map[string]any

// customSettings reads a class's Bottlerocket settings. The error says why a machine could not boot with them.
func customSettings(text string) (table, error) {
	document := table{}
	if _, err := toml.Decode(text, &document); err != nil {
		return nil, fmt.Errorf("TOML: %w", err)
	}
	for key := range document {
		if key != "settings" {
			delete(document, key) // Bottlerocket does not read it
		}
	}
	settings, err := subtable(document, "settings")
	if err != nil {
		return nil, err
	}
	kubernetes, err := subtable(settings, "kubernetes")
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"node-labels", "node-taints"} {
		if _, has := kubernetes[key]; !has {
			continue
		}
		if _, err := subtable(kubernetes, key); err != nil {
			return nil, err
		}
	}
	if _, has := settings["bootstrap-commands"]; has {
		if _, err := subtable(settings, "bootstrap-commands"); err != nil {
			return nil, err
		}
	}
	return document, nil
}

// subtable returns the table of that name and makes it where there is none.
func subtable(of table, name string) (table, error) {
	value, has := of[name]
	if !has {
		made := table{}
		of[name] = made
		return made, nil
	}
	found, ok := value.(table)
	if !ok {
		return nil, fmt.Errorf("TOML: %s is not a table", name)
	}
	return found, nil
}

// bottlerocketSettings are the class's own with ours on top.
func (b *bootConfig) bottlerocketSettings() (string, error) {
	document, err := customSettings(b.custom)
	if err != nil {
		return "", err
	}
	settings, err := subtable(document, "settings")
	if err != nil {
		return "", err
	}
	kubernetes, err := subtable(settings, "kubernetes")
	if err != nil {
		return "", err
	}
	kubernetes["api-server"] = b.cluster.endpoint
	kubernetes["cluster-certificate"] = b.cluster.ca
	kubernetes["cluster-name"] = b.name
	kubernetes["max-pods"] = b.maxPods
	b.setDNS(kubernetes)
	labels, err := subtable(kubernetes, "node-labels")
	if err != nil {
		return "", err
	}
	for key, value := range b.nodeLabels() {
		labels[key] = value
	}
	b.setTaints(kubernetes)
	b.setKubelet(kubernetes)
	if b.raid0 {
		commands, err := subtable(settings, "bootstrap-commands")
		if err != nil {
			return "", err
		}
		commands["000-mount-instance-storage"] = table{"commands": instanceStorageCommands(b.image), "mode": "always", "essential": true}
	}
	var text bytes.Buffer
	encoder := toml.NewEncoder(&text)
	encoder.Indent = ""
	if err := encoder.Encode(document); err != nil {
		return "", fmt.Errorf("writing TOML: %w", err)
	}
	return text.String(), nil
}

// setDNS takes the class's address, else the one in the class's settings, else EKS's: Bottlerocket would ask EKS for
// the cluster, which a node's role may not be allowed to.
func (b *bootConfig) setDNS(kubernetes table) {
	switch address := clusterDNS(b.cluster.serviceCIDR); {
	case b.kubelet != nil && len(b.kubelet.ClusterDNS) > 0:
		kubernetes["cluster-dns-ip"] = b.kubelet.ClusterDNS[0]
	case kubernetes["cluster-dns-ip"] == nil && address != "":
		kubernetes["cluster-dns-ip"] = address
	}
}

// clusterDNS is empty if the CIDR cannot be read.
func clusterDNS(cidr string) string {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return ""
	}
	address := prefix.Masked().Addr()
	for range dnsOffset {
		address = address.Next()
	}
	if !prefix.Contains(address) {
		return ""
	}
	return address.String()
}

// setTaints replaces those of the class's settings: pods are planned for the taints of the NodePool.
func (b *bootConfig) setTaints(kubernetes table) {
	taints := table{}
	for _, taint := range b.nodeTaints() {
		values, _ := taints[taint.Key].([]string)
		taints[taint.Key] = append(values, taint.Value+":"+string(taint.Effect))
	}
	delete(kubernetes, "node-taints")
	if len(taints) > 0 {
		kubernetes["node-taints"] = taints
	}
}

// setKubelet writes what the class says; what it does not say stays as it is in its settings.
func (b *bootConfig) setKubelet(kubernetes table) {
	k := b.kubelet
	if k == nil {
		return
	}
	for key, values := range map[string]map[string]string{
		"system-reserved": k.SystemReserved, "kube-reserved": k.KubeReserved, "eviction-hard": k.EvictionHard, "eviction-soft": k.EvictionSoft,
	} {
		if len(values) > 0 {
			kubernetes[key] = values
		}
	}
	if len(k.EvictionSoftGracePeriod) > 0 {
		periods := map[string]string{}
		for signal, period := range k.EvictionSoftGracePeriod {
			periods[signal] = period.Duration.String()
		}
		kubernetes["eviction-soft-grace-period"] = periods
	}
	if k.EvictionMaxPodGracePeriod != nil {
		kubernetes["eviction-max-pod-grace-period"] = int64(*k.EvictionMaxPodGracePeriod)
	}
	for key, percent := range map[string]*int32{
		"image-gc-high-threshold-percent": k.ImageGCHighThresholdPercent, "image-gc-low-threshold-percent": k.ImageGCLowThresholdPercent,
	} {
		if percent != nil {
			kubernetes[key] = strconv.Itoa(int(*percent)) // the setting is a string
		}
	}
	if k.CPUCFSQuota != nil {
		kubernetes["cpu-cfs-quota-enforced"] = *k.CPUCFSQuota
	}
}

// bindsEverything is the first Bottlerocket version that needs no list of folders, as major and minor.
var bindsEverything = [2]int{1, 46}

var bottlerocketVersion = regexp.MustCompile(`-v(\d{1,4})\.(\d{1,4})\.\d{1,4}(-|$)`)

// instanceStorageCommands have the instance store disks made into one and the pods' folders put there. Of an image whose
// name has no version the folders are named, which every version understands.
func instanceStorageCommands(image string) [][]string {
	bind := []string{"apiclient", "ephemeral-storage", "bind"}
	found := bottlerocketVersion.FindStringSubmatch(image)
	var major, minor int
	if found != nil {
		major, _ = strconv.Atoi(found[1])
		minor, _ = strconv.Atoi(found[2])
	}
	if major < bindsEverything[0] || (major == bindsEverything[0] && minor < bindsEverything[1]) {
		bind = append(bind, "--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")
	}
	return [][]string{{"apiclient", "ephemeral-storage", "init"}, bind}
}

// bottlerocketKubelet finds the settings that Bottlerocket has no counterpart for.
func bottlerocketKubelet(kubelet *awsv1.KubeletConfiguration) *fault {
	var wrong []string
	if kubelet.PodsPerCore != nil {
		wrong = append(wrong, kubeletFieldRoot+"podsPerCore")
	}
	if len(kubelet.ClusterDNS) > 1 {
		wrong = append(wrong, kubeletFieldRoot+"clusterDNS with more than one address")
	}
	if len(wrong) == 0 {
		return nil
	}
	return &fault{"UnsupportedKubeletConfiguration", strings.Join(wrong, ", ") + ": Bottlerocket has no such setting"}
}
