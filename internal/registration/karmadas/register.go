package karmadas

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/cluster-bootstrap/token/jws"
	"k8s.io/utils/ptr"
)

const (
	agentsGroup   = "system:karmada:agents"
	agentPrefix   = "system:karmada:agent:"
	generatorName = agentPrefix + "rbac-generator"
	tokensGroup   = "system:bootstrappers:karmada:default-cluster-token"

	// timeout is how long one step may take.
	timeout = time.Minute
	poll    = 50 * time.Millisecond
	// year is the default lifetime of an agent's certificate.
	year = 365 * 24 * time.Hour
)

// TokenSecret returns the Secret that karmadactl token create makes for a token.
func TokenSecret(token string) *corev1.Secret {
	id, secret, _ := strings.Cut(token, ".")
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id},
		Type:       corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			"token-id": []byte(id), "token-secret": []byte(secret),
			"expiration":              []byte(time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)),
			"usage-bootstrap-signing": []byte("true"), "usage-bootstrap-authentication": []byte("true"),
			"auth-extra-groups": []byte(tokensGroup), "description": []byte("a cluster of Karmada's"),
		},
	}
}

// Register is a call of karmadactl register.
type Register struct {
	// Endpoint is the address of the control plane.
	Endpoint string
	// Token and CAHash are its command line arguments; the hash begins with
	// "sha256:".
	Token, CAHash string
	// Cluster is the name that the cluster gets.
	Cluster string
	// Warned is called with the warnings of the control plane; it may be nil.
	Warned func(text string)
}

// Discover is the first step: it returns a connection that is authenticated by
// the token.
func (r *Register) Discover(ctx context.Context) (*rest.Config, error) {
	// The server is not verified yet: the answer is trusted by its signature with
	// the token, and the authority in it by its hash.
	insecure := &rest.Config{Host: r.Endpoint, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	id, secret, _ := strings.Cut(r.Token, ".")
	var content, signature string
	err := wait.PollUntilContextTimeout(ctx, poll, timeout, true, func(ctx context.Context) (bool, error) {
		anonymous, err := kubernetes.NewForConfig(insecure)
		if err != nil {
			return false, err
		}
		info, err := anonymous.CoreV1().ConfigMaps("kube-public").Get(ctx, "cluster-info", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		content, signature = info.Data["kubeconfig"], info.Data["jws-kubeconfig-"+id]
		return signature != "", nil
	})
	if err != nil {
		return nil, fmt.Errorf("read cluster-info: %w", err)
	}
	if !jws.DetachedTokenIsValid(signature, content, id, secret) {
		return nil, errors.New("cluster-info is not signed with the token")
	}
	config, err := clientcmd.Load([]byte(content))
	if err != nil {
		return nil, err
	}
	cluster := config.Clusters[""]
	if cluster == nil {
		return nil, errors.New("cluster-info names no cluster")
	}
	authorities, err := cert.ParseCertsPEM(cluster.CertificateAuthorityData)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(authorities[0].RawSubjectPublicKeyInfo)
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != r.CAHash {
		return nil, fmt.Errorf("the authority has the hash %s", got)
	}
	return r.connection(cluster.Server, cluster.CertificateAuthorityData, func(c *rest.Config) { c.BearerToken = r.Token }), nil
}

func (r *Register) connection(server string, ca []byte, as func(*rest.Config)) *rest.Config {
	config := &rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{CAData: ca}, QPS: -1, WarningHandler: warnings(r.Warned)}
	as(config)
	return config
}

type warnings func(string)

func (w warnings) HandleWarningHeader(code int, _, text string) {
	if w != nil && code == 299 {
		w(text)
	}
}

// Generator is the second step: it returns a connection of the user that creates
// the agent's RBAC objects.
func (r *Register) Generator(ctx context.Context, byToken *rest.Config) (*rest.Config, error) {
	return r.certificate(ctx, byToken, "agent-rbac-generator-"+r.Cluster+utilrand.String(5), generatorName, nil)
}

// Agent is the fourth step: it returns a connection of the agent.
func (r *Register) Agent(ctx context.Context, byToken *rest.Config) (*rest.Config, error) {
	return r.certificate(ctx, byToken, r.Cluster+"-"+utilrand.String(5), agentPrefix+r.Cluster, ptr.To(int32(year.Seconds())))
}

// certificate requests a certificate, waits for it, and returns a connection with
// it.
func (r *Register) certificate(ctx context.Context, by *rest.Config, request, user string, seconds *int32) (*rest.Config, error) {
	csr, key, err := Request(request, pkix.Name{CommonName: user, Organization: []string{agentsGroup}})
	if err != nil {
		return nil, err
	}
	csr.Spec.ExpirationSeconds = seconds
	hub, err := kubernetes.NewForConfig(by)
	if err != nil {
		return nil, err
	}
	requests := hub.CertificatesV1().CertificateSigningRequests()
	if _, err := requests.Create(ctx, csr, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	var certificate []byte
	err = wait.PollUntilContextTimeout(ctx, poll, timeout, true, func(ctx context.Context) (bool, error) {
		got, err := requests.Get(ctx, request, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, c := range got.Status.Conditions {
			if c.Type == certificatesv1.CertificateDenied {
				return false, apierrors.NewForbidden(certificatesv1.Resource("certificatesigningrequests"), request, errors.New(c.Message))
			}
		}
		certificate = got.Status.Certificate
		return len(certificate) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("the certificate of %s: %w", user, err)
	}
	return r.connection(by.Host, by.CAData, func(c *rest.Config) { c.CertData, c.KeyData = certificate, key }), nil
}

// Request returns a certificate request for a subject, and its key.
func Request(name string, subject pkix.Name) (*certificatesv1.CertificateSigningRequest, []byte, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, private)
	if err != nil {
		return nil, nil, err
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(private)
	if err != nil {
		return nil, nil, err
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: "kubernetes.io/kube-apiserver-client",
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}, key, nil
}
