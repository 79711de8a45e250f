package registration

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
)

var (
	// ErrToken means that the token is malformed, or not one that the control
	// plane knows.
	ErrToken = errors.New("the token is not accepted")
	// ErrUntrusted means that another control plane answered than the one that was
	// meant.
	ErrUntrusted = errors.New("the control plane is not the one that was meant")
)

const (
	// DefaultTimeout is how long a step of a registration may take.
	DefaultTimeout = 5 * time.Minute
	requestTimeout = 15 * time.Second
	poll           = 500 * time.Millisecond
	// reportEvery is how often it is reported that the control plane does not
	// answer.
	reportEvery = 10 * time.Second
)

// Discovery is where the control plane is, and how to recognise it. Endpoint,
// Token, and either CAHashes or UnsafeSkipCAVerification are required.
type Discovery struct {
	// Endpoint is the address of the control plane: host:port or https://host:port.
	Endpoint string
	// Token is a bootstrap token: it authenticates the control plane to the
	// caller, and the caller to the control plane.
	Token string
	// CAHashes are the hashes that `flotilla token create` prints: "sha256:" and
	// the hash of the CA's public key. One of them has to match.
	CAHashes []string
	// UnsafeSkipCAVerification trusts any server that knows the token.
	UnsafeSkipCAVerification bool
	// Timeout is how long to try; zero means DefaultTimeout.
	Timeout time.Duration
	// Report is called at once and then every few seconds with why there is no
	// answer yet; it may be nil.
	Report func(why error)
}

// Discover finds the control plane, verifies that it is the one that was meant,
// and returns a connection that is authenticated by the token.
//
// The document that describes the control plane is read from an unverified
// connection. It has to be signed with the token, its CA must have one of the
// given hashes, and the server must then answer with a certificate of that CA.
// Errors: ErrToken and ErrUntrusted, for both of which a person has to act, or
// why there was no answer.
func Discover(ctx context.Context, d Discovery) (*rest.Config, error) {
	host, err := d.check()
	if err != nil {
		return nil, err
	}
	if d.Timeout == 0 {
		d.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.Timeout, fmt.Errorf("it took longer than %s", d.Timeout))
	defer cancel()
	info, err := d.await(ctx, host)
	if err != nil {
		return nil, err
	}
	ca, err := d.authority(info)
	if err != nil {
		return nil, err
	}
	cfg := &rest.Config{Host: host, Timeout: requestTimeout, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	again, err := clusterInfo(ctx, cfg)
	if err != nil {
		return nil, explain(err, host)
	}
	if again.Data[bootstrapapi.KubeConfigKey] != info.Data[bootstrapapi.KubeConfigKey] {
		return nil, fmt.Errorf("%w: %s described itself differently when it was asked again", ErrUntrusted, host)
	}
	cfg.BearerToken = d.Token
	return cfg, nil
}

// Check returns the error that can be seen without a request.
func (d *Discovery) Check() error {
	_, err := d.check()
	return err
}

// check is Check, and returns the address with its scheme.
func (d *Discovery) check() (string, error) {
	if !bootstraputil.IsValidBootstrapToken(d.Token) {
		return "", fmt.Errorf("%w: a token is 6 characters, a dot, and 16 characters, each a-z or 0-9", ErrToken)
	}
	if len(d.CAHashes) == 0 && !d.UnsafeSkipCAVerification {
		return "", fmt.Errorf("%w: no hash of its authority is given to know it by", ErrUntrusted)
	}
	for _, hash := range d.CAHashes {
		if _, err := decodeHash(hash); err != nil {
			return "", err
		}
	}
	return Address(d.Endpoint)
}

// Address returns the address of a control plane with its scheme, which endpoint
// need not have. It must be https, with only scheme, host and port.
func Address(endpoint string) (string, error) {
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Hostname() == "":
		return "", errors.New("the endpoint is no address: give host:port of the control plane")
	case u.Scheme != "https":
		return "", fmt.Errorf("the endpoint has the scheme %s: the control plane is reached by https", u.Scheme)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return "", errors.New("the endpoint has more than host and port: give host:port of the control plane")
	}
	return "https://" + u.Host, nil
}

func decodeHash(hash string) ([]byte, error) {
	digits, ok := strings.CutPrefix(strings.ToLower(hash), "sha256:")
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("%q is no hash of an authority: it is sha256: and 64 hexadecimal digits", hash)
	}
	return sum, nil
}

// CAHash returns the hash by which a CA's certificate is pinned.
func CAHash(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// signs is how long a control plane that answers may take to sign its document
// with a token that was just created.
const signs = 15 * time.Second

// await reads the document until it is signed with the token.
func (d *Discovery) await(ctx context.Context, host string) (*corev1.ConfigMap, error) {
	cfg := &rest.Config{Host: host, Timeout: requestTimeout, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	var info *corev1.ConfigMap
	var answered, reported time.Time
	var last error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		found, err := clusterInfo(ctx, cfg)
		answers := err == nil || apierrors.IsNotFound(err)
		if err == nil {
			err = d.signed(found, host)
		}
		switch {
		case err == nil:
			info = found
			return true, nil
		case errors.Is(err, errForged):
			return false, err
		case ctx.Err() == nil || last == nil:
			last = explain(err, host)
		}
		if answered.IsZero() && answers {
			answered = time.Now()
		}
		if !answered.IsZero() && time.Since(answered) > signs {
			return false, last
		}
		if d.Report != nil && answered.IsZero() && ctx.Err() == nil && time.Since(reported) >= reportEvery {
			reported = time.Now()
			d.Report(last)
		}
		return false, nil // a server that does not answer may be starting
	})
	if wait.Interrupted(err) && last != nil && !errors.Is(context.Cause(ctx), context.Canceled) {
		return nil, last
	}
	return info, err
}

// errForged is the error of a signature that was made with another token.
var errForged = fmt.Errorf("%w: its secret part is not what the control plane has", ErrToken)

// signed returns an error unless the document is signed with the token.
func (d *Discovery) signed(info *corev1.ConfigMap, host string) error {
	id, secret, _ := strings.Cut(d.Token, ".")
	signature := info.Data[bootstrapapi.JWSSignatureKeyPrefix+id]
	if signature == "" {
		return fmt.Errorf("%w: %s knows no token %s: it has expired, was used or deleted, or is another control plane's; flotilla token create makes another", ErrToken, host, id)
	}
	if !jws.DetachedTokenIsValid(signature, info.Data[bootstrapapi.KubeConfigKey], id, secret) {
		return fmt.Errorf("%w: the token %s was copied wrongly, or somebody else answers at %s", errForged, id, host)
	}
	return nil
}

func clusterInfo(ctx context.Context, cfg *rest.Config) (*corev1.ConfigMap, error) {
	unlimited := rest.CopyConfig(cfg)
	unlimited.QPS = -1
	hub, err := kubernetes.NewForConfig(unlimited)
	if err != nil {
		return nil, err
	}
	return hub.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, bootstrapapi.ConfigMapClusterInfo, metav1.GetOptions{})
}

// authority returns those CA certificates of the document that have one of the
// given hashes.
func (d *Discovery) authority(info *corev1.ConfigMap) ([]byte, error) {
	config, err := clientcmd.Load([]byte(info.Data[bootstrapapi.KubeConfigKey]))
	if err != nil || len(config.Clusters) != 1 {
		return nil, fmt.Errorf("%w: its ConfigMap kube-public/cluster-info does not hold one cluster", ErrUntrusted)
	}
	var cluster *clientcmdapi.Cluster
	for _, cluster = range config.Clusters {
	}
	bundle, err := cert.ParseCertsPEM(cluster.CertificateAuthorityData)
	if err != nil {
		return nil, fmt.Errorf("%w: its ConfigMap kube-public/cluster-info holds no authority", ErrUntrusted)
	}
	if d.UnsafeSkipCAVerification && len(d.CAHashes) == 0 {
		return cluster.CertificateAuthorityData, nil
	}
	pinned := bytes.Buffer{} // certificates without a given hash are not trusted
	for _, certificate := range bundle {
		if slices.ContainsFunc(d.CAHashes, func(hash string) bool { return strings.EqualFold(hash, CAHash(certificate)) }) {
			pinned.Write(encode(cert.CertificateBlockType, certificate.Raw))
		}
	}
	if pinned.Len() == 0 {
		return nil, fmt.Errorf("%w: its authority has the hash %s, which is none of those given", ErrUntrusted, CAHash(bundle[0]))
	}
	return pinned.Bytes(), nil
}

// explain returns an error for users for an error of a connection to the control
// plane, with what it means and what to do; nil for nil.
func explain(err error, host string) error {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var refused *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		return fmt.Errorf("the certificate of %s is good from %s to %s, which is not now by the clock of this machine: set the clock",
			host, invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: the certificate of %s is of another authority", ErrUntrusted, host)
	case errors.As(err, &name):
		return fmt.Errorf("the certificate of %s does not cover that name: use another address, or start the control plane with --advertise-host", host)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w by %s: it has expired, was used or deleted; flotilla token create makes another", ErrToken, host)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s takes no registrations: it has no ConfigMap kube-public/cluster-info", host)
	case errors.As(err, &refused):
		return fmt.Errorf("no control plane answers at %s: %w", host, refused)
	}
	return err
}
