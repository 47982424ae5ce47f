// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
)

const (
	certificateLife = 24 * time.Hour
	clockSkew       = 5 * time.Minute
)

// issuer signs client certificates with the CA that the API server trusts for clients.
type issuer struct {
	certificate *x509.Certificate
	key         crypto.PrivateKey
}

func newIssuer(certFile, keyFile string) (*issuer, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading --client-ca-cert and --client-ca-key: %w", err)
	}
	certificate, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("reading --client-ca-cert: %w", err)
	}
	return &issuer{certificate: certificate, key: pair.PrivateKey}, nil
}

func (i *issuer) nodeClient(_ context.Context, cluster fakeaws.ClusterInfo, nodeName string) (kubernetes.Interface, error) {
	return i.client(cluster, "system:node:"+nodeName, "system:nodes")
}

// cloudControllerClient may delete Nodes; in EKS the control plane runs that controller.
func (i *issuer) cloudControllerClient(_ context.Context, cluster fakeaws.ClusterInfo) (kubernetes.Interface, error) {
	return i.client(cluster, "cloud-controller-manager", "system:masters")
}

func (i *issuer) client(cluster fakeaws.ClusterInfo, user, group string) (kubernetes.Interface, error) {
	cert, key, err := i.issue(user, group)
	if err != nil {
		return nil, fmt.Errorf("issuing a certificate for %s: %w", user, err)
	}
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host:            cluster.Endpoint,
		TLSClientConfig: rest.TLSClientConfig{CAData: cluster.CA, CertData: cert, KeyData: key},
		UserAgent:       user,
		Timeout:         30 * time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", user, err)
	}
	return client, nil
}

func (i *issuer) issue(user, group string) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: user, Organization: []string{group}},
		NotBefore:    time.Now().Add(-clockSkew),
		NotAfter:     time.Now().Add(certificateLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.certificate, key.Public(), i.key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}
