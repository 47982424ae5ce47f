//go:build deps

package deps

import (
	_ "github.com/aws/aws-sdk-go-v2/aws"
	_ "github.com/aws/aws-sdk-go-v2/config"
	_ "github.com/aws/aws-sdk-go-v2/credentials"
	_ "github.com/aws/aws-sdk-go-v2/service/ec2"
	_ "github.com/aws/aws-sdk-go-v2/service/eks"
	_ "github.com/aws/aws-sdk-go-v2/service/iam"
	_ "github.com/aws/aws-sdk-go-v2/service/pricing"
	_ "github.com/aws/aws-sdk-go-v2/service/ssm"
	_ "github.com/aws/aws-sdk-go-v2/service/sts"
	_ "github.com/aws/karpenter-provider-aws/pkg/apis"
	_ "github.com/google/go-cmp/cmp"
	_ "golang.org/x/tools/txtar"
	_ "k8s.io/client-go/kubernetes/fake"
	_ "k8s.io/client-go/dynamic/fake"
	_ "k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "k8s.io/kubernetes/pkg/scheduler/testing"
	_ "pgregory.net/rapid"
	_ "sigs.k8s.io/controller-runtime/pkg/client"
	_ "sigs.k8s.io/karpenter/pkg/apis"
	_ "sigs.k8s.io/karpenter/pkg/apis/v1"
	_ "sigs.k8s.io/kind/pkg/cluster"
	_ "sigs.k8s.io/yaml"

	_ "github.com/aws/aws-sdk-go-v2/service/sqs"
	_ "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	_ "k8s.io/client-go/util/cert"
)
