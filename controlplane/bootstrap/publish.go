package bootstrap

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/registration"
)

// Facts are what a control plane publishes to clusters that want to be members.
type Facts struct {
	// Server is the URL by which other machines know the control plane.
	Server string
	// CAFile holds the authority that its certificate is of.
	CAFile string
	// Version of the control plane; empty publishes none.
	Version string
	// Place is where the control plane is, as members know it; empty publishes none.
	Place string
	// Replicas says that there may be other servers of the control plane: the address
	// that was published stays as long as a server of the authority answers there.
	Replicas bool
}

// Publish writes the document by which clusters get to know the control plane, for
// all to read, and the version of the control plane, for agents.
func Publish(ctx context.Context, config *rest.Config, facts Facts) error {
	hub, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	if facts.Replicas {
		facts.Server = facts.published(ctx, hub)
	}
	identity, err := identityOf(ctx, hub)
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	content, err := facts.kubeconfig(identity)
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	documents := []*corev1apply.ConfigMapApplyConfiguration{
		// The signatures beside it are the bootstrap signer's.
		corev1apply.ConfigMap(bootstrapapi.ConfigMapClusterInfo, metav1.NamespacePublic).
			WithData(map[string]string{bootstrapapi.KubeConfigKey: string(content)}),
	}
	info := map[string]string{}
	for key, value := range map[string]string{clusterv1alpha1.HubInfoVersionKey: facts.Version, clusterv1alpha1.HubInfoPlaceKey: facts.Place} {
		if value != "" {
			info[key] = value
		}
	}
	if len(info) > 0 {
		documents = append(documents, corev1apply.ConfigMap(clusterv1alpha1.HubInfoName, workv1alpha2.NamespaceKarmadaSystem).WithData(info))
	}
	for _, document := range documents {
		_, err := hub.CoreV1().ConfigMaps(*document.Namespace).Apply(ctx, document, metav1.ApplyOptions{FieldManager: string(fieldOwner), Force: true})
		if err != nil {
			return fmt.Errorf("bootstrap ConfigMap %s: %w", *document.Name, err)
		}
	}
	return nil
}

const (
	// systemTimeout is how long the server may take to make its namespaces.
	systemTimeout = 30 * time.Second
	systemPoll    = 50 * time.Millisecond
)

// identityOf returns the identity of the control plane: the UID of its namespace
// kube-system, which the server makes when it starts for the first time.
func identityOf(ctx context.Context, hub kubernetes.Interface) (identity string, err error) {
	err = wait.PollUntilContextTimeout(ctx, systemPoll, systemTimeout, true, func(ctx context.Context) (bool, error) {
		system, err := hub.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		identity = string(system.UID)
		return true, nil
	})
	if err != nil {
		return "", fmt.Errorf("read the identity of the control plane: %w", err)
	}
	return identity, nil
}

// probeTimeout is how long a published address may take to answer.
const probeTimeout = 5 * time.Second

// published is the address that is published if a server of the authority answers
// there, and this server's otherwise.
func (f Facts) published(ctx context.Context, hub kubernetes.Interface) string {
	document, err := hub.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, bootstrapapi.ConfigMapClusterInfo, metav1.GetOptions{})
	if err != nil {
		return f.Server
	}
	config, err := clientcmd.Load([]byte(document.Data[bootstrapapi.KubeConfigKey]))
	if err != nil || config.Clusters[""] == nil {
		return f.Server
	}
	if there := config.Clusters[""].Server; there == f.Server || f.answers(ctx, there) {
		return there
	}
	return f.Server
}

// answers reports whether a server with a certificate of the authority is at an address.
func (f Facts) answers(ctx context.Context, server string) bool {
	probe, err := rest.HTTPClientFor(&rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{CAFile: f.CAFile}, Timeout: probeTimeout})
	if err != nil {
		return false
	}
	defer probe.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(server, "/")+"/livez", nil)
	if err != nil {
		return false
	}
	resp, err := probe.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return true
}

// kubeconfig is the document: an address, an authority and whose they are, nobody's
// credentials.
func (f Facts) kubeconfig(identity string) ([]byte, error) {
	ca, err := os.ReadFile(f.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[""] = &clientcmdapi.Cluster{Server: f.Server, CertificateAuthorityData: ca, Extensions: registration.Extensions(identity)}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write the description of the control plane: %w", err)
	}
	return content, nil
}
