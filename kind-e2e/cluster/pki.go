// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certLifetime is longer than any run, and short enough that a leaked key of a
// run is worth nothing.
const certLifetime = 7 * 24 * time.Hour

// CertFiles are a PEM certificate and its PEM private key on disk.
type CertFiles struct{ CertPath, KeyPath string }

// keyPair is a certificate and its key, in PEM.
type keyPair struct{ certPEM, keyPEM []byte }

// authority signs certificates. The cluster has four: one whose certificates
// servers show, one whose certificates clients of the API server show, one for
// etcd, so that no API client may read etcd, and one for front proxies, so that
// no API client may speak for others.
type authority struct {
	keyPair
	cert *x509.Certificate
	key  crypto.Signer
}

func newAuthority(name string) (*authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the key of %s: %w", name, err)
	}
	pair, cert, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("creating %s: %w", name, err)
	}
	return &authority{keyPair: pair, cert: cert, key: key}, nil
}

// parseAuthority reads what an authority's files hold.
func parseAuthority(pair keyPair) (*authority, error) {
	certBlock, _ := pem.Decode(pair.certPEM)
	keyBlock, _ := pem.Decode(pair.keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, fmt.Errorf("the authority's certificate or key is not PEM")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parsing the authority's certificate: %w", err)
	}
	var key any
	switch keyBlock.Type {
	case "RSA PRIVATE KEY": // kubeadm's
		key, err = x509.ParsePKCS1PrivateKey(keyBlock.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(keyBlock.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("parsing the authority's key: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the authority's key cannot sign")
	}
	return &authority{keyPair: pair, cert: cert, key: signer}, nil
}

// server returns a certificate for a server that is reached at hosts, each an IP
// address or a DNS name.
func (a *authority) server(name string, hosts ...string) (keyPair, error) {
	return a.issueHosts(name, hosts, x509.ExtKeyUsageServerAuth)
}

// peer returns a certificate for a server that is also a client of its likes.
func (a *authority) peer(name string, hosts ...string) (keyPair, error) {
	return a.issueHosts(name, hosts, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

func (a *authority) issueHosts(name string, hosts []string, usages ...x509.ExtKeyUsage) (keyPair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: usages,
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.issue(template)
}

// client returns a certificate of the Kubernetes user in groups.
func (a *authority) client(user string, groups ...string) (keyPair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issue(template *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generating the key of %s: %w", template.Subject, err)
	}
	pair, _, err := sign(template, a.cert, key, a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("issuing the certificate of %s: %w", template.Subject, err)
	}
	return pair, nil
}

func sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey, parentKey crypto.Signer) (keyPair, *x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return keyPair{}, nil, err
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1)) // zero is not a valid serial
	template.NotBefore = time.Now().Add(-5 * time.Minute)
	template.NotAfter = time.Now().Add(certLifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return keyPair{}, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return keyPair{}, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return keyPair{}, nil, err
	}
	return keyPair{
		certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, cert, nil
}

// serviceAccountKey returns the key pair that signs and verifies
// ServiceAccount tokens: certPEM is a public key here.
func serviceAccountKey() (keyPair, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return keyPair{}, fmt.Errorf("generating the service account key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return keyPair{}, fmt.Errorf("encoding the service account key: %w", err)
	}
	return keyPair{
		certPEM: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		keyPEM: pem.EncodeToMemory(&pem.Block{
			Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key),
		}),
	}, nil
}

// write stores the pair as dir/name.crt and dir/name.key.
func (k keyPair) write(dir, name string) (CertFiles, error) {
	files := CertFiles{CertPath: filepath.Join(dir, name+".crt"), KeyPath: filepath.Join(dir, name+".key")}
	if err := os.WriteFile(files.CertPath, k.certPEM, 0o644); err != nil {
		return CertFiles{}, err
	}
	return files, os.WriteFile(files.KeyPath, k.keyPEM, 0o600)
}
