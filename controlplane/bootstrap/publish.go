package bootstrap

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

const (
	// infoName is the ConfigMap in karmada-system that tells agents about the
	// control plane, infoVersionKey is where it tells the version.
	infoName, infoVersionKey = "flotilla-info", "version"
)

// Facts are what a control plane tells clusters that want to be members.
type Facts struct {
	// Server is the URL by which other machines know the control plane.
	Server string
	// CAFile holds the authority that its certificate is of.
	CAFile string
	// Version of the control plane; empty tells none.
	Version string
}

// Publish writes the document by which clusters get to know the control plane, for
// all to read, and the version of the control plane, for agents.
func Publish(ctx context.Context, config *rest.Config, facts Facts) error {
	hub, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	content, err := facts.kubeconfig()
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	documents := []*corev1apply.ConfigMapApplyConfiguration{
		// The signatures beside it are the bootstrap signer's.
		corev1apply.ConfigMap(bootstrapapi.ConfigMapClusterInfo, metav1.NamespacePublic).
			WithData(map[string]string{bootstrapapi.KubeConfigKey: string(content)}),
	}
	if facts.Version != "" {
		documents = append(documents, corev1apply.ConfigMap(infoName, workv1alpha2.NamespaceKarmadaSystem).
			WithData(map[string]string{infoVersionKey: facts.Version}))
	}
	for _, document := range documents {
		_, err := hub.CoreV1().ConfigMaps(*document.Namespace).Apply(ctx, document, metav1.ApplyOptions{FieldManager: string(fieldOwner), Force: true})
		if err != nil {
			return fmt.Errorf("bootstrap ConfigMap %s: %w", *document.Name, err)
		}
	}
	return nil
}

// kubeconfig is the document: an address and an authority, nobody's credentials.
func (f Facts) kubeconfig() ([]byte, error) {
	ca, err := os.ReadFile(f.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[""] = &clientcmdapi.Cluster{Server: f.Server, CertificateAuthorityData: ca}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write the description of the control plane: %w", err)
	}
	return content, nil
}
