package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// ErrNotAgent means that a request is not for the certificate of an agent, and
// does not look like one.
var ErrNotAgent = errors.New("the request is not for the certificate of an agent")

// ErrGenerator means that a request is a valid one for the certificate of an
// agent, except that it is for Generator.
var ErrGenerator = errors.New("the control plane makes the rights of agents itself: register the cluster with flotilla register, or start flotillad serve with --allow-karmadactl-register")

const (
	minRSABits   = 2048
	minECDSABits = 256
)

var (
	subjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}
	commonName     = asn1.ObjectIdentifier{2, 5, 4, 3}
	organization   = asn1.ObjectIdentifier{2, 5, 4, 10}
)

// Usages returns the key usages of an agent's certificate.
func Usages() []certificatesv1.KeyUsage {
	return []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}
}

// Check returns the cluster whose agent a request is for. It returns an error
// unless the request is exactly one for the certificate of an agent: ErrNotAgent
// for a request of another kind, ErrGenerator for the one that karmadactl makes
// to create RBAC objects, and otherwise one that explains what is wrong.
func Check(spec *certificatesv1.CertificateSigningRequestSpec) (cluster string, err error) {
	request, err := parse(spec.Request)
	if err != nil {
		return "", err
	}
	if !asksForAgent(request) {
		return "", ErrNotAgent
	}
	if spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return "", fmt.Errorf("the signer is %s, it must be %s", spec.SignerName, certificatesv1.KubeAPIServerClientSignerName)
	}
	if err := errors.Join(checkUsages(spec.Usages), checkKey(request), checkNames(request)); err != nil {
		return "", err
	}
	return checkSubject(request)
}

// parse decodes the request, which has to be the only one in content.
func parse(content []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(content)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("the request is not one CERTIFICATE REQUEST in PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the request cannot be read: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("the request is not signed with its own key: %w", err)
	}
	return request, nil
}

// asksForAgent reports whether a request is meant for an agent's certificate,
// valid or not.
func asksForAgent(request *x509.CertificateRequest) bool {
	return slices.Contains(request.Subject.Organization, AgentsGroup) || strings.HasPrefix(request.Subject.CommonName, agentPrefix)
}

func checkUsages(usages []certificatesv1.KeyUsage) error {
	sorted := slices.Sorted(slices.Values(usages))
	for _, allowed := range [][]certificatesv1.KeyUsage{
		{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature},
		{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment},
	} {
		if slices.Equal(sorted, allowed) {
			return nil
		}
	}
	return fmt.Errorf("the usages are %q, they must be %q", usages, Usages())
}

func checkKey(request *x509.CertificateRequest) error {
	switch key := request.PublicKey.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < minRSABits {
			return fmt.Errorf("the RSA key has %d bits, it must have at least %d", key.N.BitLen(), minRSABits)
		}
	case *ecdsa.PublicKey:
		if key.Params().BitSize < minECDSABits {
			return fmt.Errorf("the ECDSA key has %d bits, it must have at least %d", key.Params().BitSize, minECDSABits)
		}
	case ed25519.PublicKey:
	default:
		return fmt.Errorf("the key is of the kind %s, it must be ECDSA, Ed25519 or RSA", request.PublicKeyAlgorithm)
	}
	return nil
}

// checkNames refuses subject alternative names, which would be copied into the
// certificate.
func checkNames(request *x509.CertificateRequest) error {
	for _, extension := range slices.Concat(request.Extensions, request.ExtraExtensions) {
		if extension.Id.Equal(subjectAltName) {
			return errors.New("the request has subject alternative names, it must have none")
		}
	}
	return nil
}

func checkSubject(request *x509.CertificateRequest) (cluster string, err error) {
	for _, name := range request.Subject.Names {
		if !name.Type.Equal(commonName) && !name.Type.Equal(organization) {
			return "", fmt.Errorf("the subject has the attribute %s, it must have a common name and an organization alone", name.Type)
		}
	}
	if !slices.Equal(request.Subject.Organization, []string{AgentsGroup}) {
		return "", fmt.Errorf("the organizations are %q, there must be one: %s", request.Subject.Organization, AgentsGroup)
	}
	if len(request.Subject.Names) > 2 { // one of them is the organization
		return "", errors.New("the subject has more than one common name")
	}
	cluster, ok := ClusterOfAgent(request.Subject.CommonName)
	if !ok {
		return "", fmt.Errorf("the common name is %q, it must be %s and the name of a cluster", request.Subject.CommonName, agentPrefix)
	}
	if strings.HasSuffix(cluster, ImpersonatorSuffix) {
		return "", fmt.Errorf("a cluster's name does not end with %s: its credentials would be another's", ImpersonatorSuffix)
	}
	if cluster == Generator {
		return "", ErrGenerator
	}
	return cluster, nil
}
