package pki

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"

	"github.com/flotilla-io/flotilla/controlplane/datadir"
)

// Kubeconfig is the content of a kubeconfig file.
type Kubeconfig struct {
	// Context names the context, the cluster and the user in the file.
	Context string
	// Also are further names for the same cluster and context.
	Also []string
	// Server is the URL of the API server.
	Server string
	// Identity is the user and groups in the file's certificate.
	Identity Identity
}

// WriteKubeconfig maintains a kubeconfig file with its own client certificate at path. The
// file is written now if it differs, and by Run when its certificate or the authority is
// renewed.
func (s *Store) WriteKubeconfig(path string, k Kubeconfig) error {
	return s.add(&kubeconfig{Kubeconfig: k, path: path})
}

// A kubeconfig is an item.
type kubeconfig struct {
	Kubeconfig
	path string
}

func (k *kubeconfig) ensure(s *Store, now time.Time) error {
	want := &certificate{file: k.path, signer: s.main, subject: k.Identity.subject(), usage: x509.ExtKeyUsageClientAuth}
	pair := k.current()
	if !want.stands(pair, now) {
		var err error
		if pair, err = s.main.issue(want.template(now)); err != nil {
			return fmt.Errorf("kubeconfig %s: %w", k.path, err)
		}
	}
	trusted, err := os.ReadFile(s.main.certFile)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", k.path, err)
	}
	content, err := clientcmd.Write(k.config(trusted, pair))
	if err != nil {
		return fmt.Errorf("encode kubeconfig %s: %w", k.path, err)
	}
	_, err = datadir.WriteFile(k.path, content)
	return err
}

// current returns the certificate and key in the file; empty if there are none.
func (k *kubeconfig) current() []byte {
	old, err := clientcmd.LoadFromFile(k.path)
	if err != nil || old.AuthInfos[k.Context] == nil {
		return nil
	}
	user := old.AuthInfos[k.Context]
	return append(append([]byte{}, user.ClientCertificateData...), user.ClientKeyData...)
}

func (k *kubeconfig) config(trusted, pair []byte) clientcmdapi.Config {
	out := clientcmdapi.NewConfig()
	certificate, key := split(pair)
	for _, name := range append([]string{k.Context}, k.Also...) {
		out.Clusters[name] = &clientcmdapi.Cluster{Server: k.Server, CertificateAuthorityData: trusted}
		out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: k.Context}
	}
	out.AuthInfos[k.Context] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	out.CurrentContext = k.Context
	return *out
}

// split separates the certificates in a PEM file from all else.
func split(pair []byte) (certificates, key []byte) {
	for block, rest := pem.Decode(pair); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			certificates = append(certificates, pem.EncodeToMemory(block)...)
		} else {
			key = append(key, pem.EncodeToMemory(block)...)
		}
	}
	return certificates, key
}

func encodePublicKey(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: der})
}
