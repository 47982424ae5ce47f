// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

var profile = aws.String("witness")

// serviceCalls are those of the small services.
var serviceCalls = []call{
	{name: "iam/GetInstanceProfile of none", do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: profile})
	}},
	{name: "iam/CreateInstanceProfile", except: map[string]string{
		`.*\.InstanceProfileId`: "moto makes up ids of another form",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{
			InstanceProfileName: profile, Path: aws.String("/karpenter/us-east-1/"), Tags: []iamtypes.Tag{{Key: aws.String("a"), Value: aws.String("b")}},
		})
	}},
	{name: "iam/CreateInstanceProfile again", do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: profile})
	}},
	{name: "iam/AddRoleToInstanceProfile of none", do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: profile, RoleName: aws.String("nobody")})
	}},
	{name: "iam/AddRoleToInstanceProfile", do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: profile, RoleName: aws.String(roleName)})
	}},
	{name: "iam/AddRoleToInstanceProfile again", do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: profile, RoleName: aws.String(roleName)})
	}},
	{name: "iam/TagInstanceProfile", do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{
			InstanceProfileName: profile, Tags: []iamtypes.Tag{{Key: aws.String("c"), Value: aws.String("d")}},
		})
	}},
	{name: "iam/GetInstanceProfile", except: map[string]string{
		`.*\.InstanceProfileId`: "moto makes up ids of another form",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: profile})
	}},
	{name: "iam/ListInstanceProfiles", except: map[string]string{
		`.*\.InstanceProfileId`: "moto makes up ids of another form",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{PathPrefix: aws.String("/karpenter/")})
	}},
	{name: "iam/ListInstanceProfiles elsewhere", do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{PathPrefix: aws.String("/other/")})
	}},
	{name: "iam/DeleteInstanceProfile with role", do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: profile})
	}},
	{name: "iam/RemoveRoleFromInstanceProfile", do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: profile, RoleName: aws.String(roleName)})
	}},
	{name: "iam/DeleteInstanceProfile", do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: profile})
	}},
	{name: "iam/DeleteInstanceProfile again", do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: profile})
	}},

	{name: "iam/GetRole", do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(roleName)})
	}},
	{name: "iam/GetRole of none", do: func(ctx context.Context, w *world) (any, error) {
		return w.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String("nobody")})
	}},

	{name: "ssm/GetParameter", do: func(ctx context.Context, w *world) (any, error) {
		return w.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(ownParameter)})
	}},
	{name: "ssm/GetParameter of none", do: func(ctx context.Context, w *world) (any, error) {
		return w.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/witness/none")})
	}},

	{name: "sqs/GetQueueUrl", do: func(ctx context.Context, w *world) (any, error) {
		out, err := w.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(queueName)})
		if err == nil {
			w.queueURL = *out.QueueUrl
		}
		return out, err
	}},
	{name: "sqs/GetQueueUrl of none", do: func(ctx context.Context, w *world) (any, error) {
		return w.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("none")})
	}},
	{name: "sqs/SendMessage", do: func(ctx context.Context, w *world) (any, error) {
		return w.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &w.queueURL, MessageBody: aws.String(`{"version":"0"}`)})
	}},
	{name: "sqs/ReceiveMessage", except: map[string]string{
		`.*\.ReceiptHandle`: "opaque",
	}, do: func(ctx context.Context, w *world) (any, error) {
		out, err := w.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &w.queueURL, MaxNumberOfMessages: 10, VisibilityTimeout: 20, WaitTimeSeconds: 1,
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameSentTimestamp},
		})
		if err == nil && len(out.Messages) > 0 {
			w.receipt = *out.Messages[0].ReceiptHandle
		}
		return out, err
	}},
	{name: "sqs/ReceiveMessage while invisible", do: func(ctx context.Context, w *world) (any, error) {
		return w.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &w.queueURL})
	}},
	{name: "sqs/GetQueueAttributes", do: func(ctx context.Context, w *world) (any, error) {
		return w.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &w.queueURL, AttributeNames: []sqstypes.QueueAttributeName{
			sqstypes.QueueAttributeNameApproximateNumberOfMessages, sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		}})
	}},
	{name: "sqs/DeleteMessage", do: func(ctx context.Context, w *world) (any, error) {
		return w.sqs.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &w.queueURL, ReceiptHandle: &w.receipt})
	}},

	{name: "eks/DescribeCluster", except: map[string]string{
		`.*\.IpFamily`:               "moto lacks it",
		`.*\.ClusterSecurityGroupId`: "moto lacks it",
		`.*\.VpcId`:                  "moto lacks it",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(clusterName)})
	}},
	{name: "eks/DescribeCluster of none", do: func(ctx context.Context, w *world) (any, error) {
		return w.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("none")})
	}},
	{name: "sts/GetCallerIdentity", except: map[string]string{
		`Arn`:    "another caller",
		`UserId`: "another caller",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	}},
}
