// Command interpreter is an interpreter webhook: it answers what a control plane asks
// about the kind Crawler of the group web.example.io.
//
// In go a certificate, its key and an address; out come answers over HTTPS. It keeps
// nothing: the same question has the same answer. As servers made with Karmada's library
// do, it says neither apiVersion nor kind in what it answers.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
)

// mostAsked is how many bytes a question may have.
const mostAsked = 8 << 20

// timeout is how long a caller may take to send its question.
const timeout = 10 * time.Second

func main() {
	address := flag.String("listen", ":8443", "the address to listen at")
	certificate := flag.String("cert", "tls.crt", "the file of the certificate")
	key := flag.String("key", "tls.key", "the file of its key")
	flag.Parse()
	server := &http.Server{Addr: *address, Handler: http.HandlerFunc(answer), ReadTimeout: timeout}
	if err := server.ListenAndServeTLS(*certificate, *key); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// Crawler is what this program knows of the kind.
type Crawler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		// Workers is how many replicas it has.
		Workers int32 `json:"workers"`
		// Sites is the ConfigMap that lists what is crawled; empty for none.
		Sites string `json:"sites"`
	} `json:"spec"`
	Status struct {
		// Running is how many of its workers are at work.
		Running int32 `json:"running"`
	} `json:"status"`
}

// answer answers one question.
func answer(w http.ResponseWriter, r *http.Request) {
	var asked configv1alpha1.ResourceInterpreterContext
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostAsked)).Decode(&asked); err != nil || asked.Request == nil {
		http.Error(w, "this is no question of an interpreter", http.StatusBadRequest)
		return
	}
	response, err := interpret(asked.Request)
	if err != nil {
		response = &configv1alpha1.ResourceInterpreterResponse{Status: &configv1alpha1.RequestStatus{Code: http.StatusUnprocessableEntity, Message: err.Error()}}
	}
	response.UID, response.Successful = asked.Request.UID, err == nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"response": response}) // no apiVersion, no kind; who hung up hears nothing
}

// interpret says what is asked of a Crawler.
func interpret(asked *configv1alpha1.ResourceInterpreterRequest) (*configv1alpha1.ResourceInterpreterResponse, error) {
	var c Crawler
	if err := json.Unmarshal(asked.Object.Raw, &c); err != nil {
		return nil, fmt.Errorf("the object is no Crawler: %w", err)
	}
	out := &configv1alpha1.ResourceInterpreterResponse{}
	switch asked.Operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		out.Replicas = &c.Spec.Workers
	case configv1alpha1.InterpreterOperationReviseReplica:
		if asked.DesiredReplicas == nil {
			return nil, fmt.Errorf("there is no number of replicas to set")
		}
		return patched(step{"add", "/spec/workers", *asked.DesiredReplicas})
	case configv1alpha1.InterpreterOperationInterpretDependency:
		out.Dependencies = []configv1alpha1.DependentObjectReference{}
		if c.Spec.Sites != "" {
			out.Dependencies = append(out.Dependencies, configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: c.Namespace, Name: c.Spec.Sites})
		}
	case configv1alpha1.InterpreterOperationInterpretHealth:
		healthy := c.Status.Running >= c.Spec.Workers
		out.Healthy = &healthy
	case configv1alpha1.InterpreterOperationInterpretStatus:
		raw, err := json.Marshal(c.Status)
		if err != nil {
			return nil, err
		}
		out.RawStatus = &runtime.RawExtension{Raw: raw}
	case configv1alpha1.InterpreterOperationAggregateStatus:
		return aggregate(asked)
	default:
		return nil, fmt.Errorf("%s of a Crawler is nothing this program knows about", asked.Operation)
	}
	return out, nil
}

// aggregate counts the workers of all clusters.
func aggregate(asked *configv1alpha1.ResourceInterpreterRequest) (*configv1alpha1.ResourceInterpreterResponse, error) {
	var total Crawler
	for _, item := range asked.AggregatedStatus {
		if item.Status == nil {
			continue
		}
		var in Crawler
		if err := json.Unmarshal(item.Status.Raw, &in.Status); err != nil {
			return nil, fmt.Errorf("the status of cluster %s: %w", item.ClusterName, err)
		}
		total.Status.Running += in.Status.Running
	}
	return patched(step{"add", "/status", total.Status})
}

// step is one step of a JSON patch.
type step struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patched is the answer that changes the object by a step.
func patched(s step) (*configv1alpha1.ResourceInterpreterResponse, error) {
	patch, err := json.Marshal([]step{s})
	if err != nil {
		return nil, err
	}
	kind := configv1alpha1.PatchTypeJSONPatch
	return &configv1alpha1.ResourceInterpreterResponse{PatchType: &kind, Patch: patch}, nil
}
