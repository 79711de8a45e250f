package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
)

// TestTheControlPlaneIsNoSource: the administrator of this fleet allows sources on
// this machine; the control plane's own ports stay out of reach all the same.
func TestTheControlPlaneIsNoSource(t *testing.T) {
	repo := the.repository(t)
	repo.write("app/none.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: none, namespace: default}\n")
	repo.push("first")
	namespace := the.follow(t, repo.url, "", "")
	source := types.NamespacedName{Namespace: namespace, Name: "src"}
	var object sourcev1.GitRepository
	eventually(t, time.Minute, "an artifact is served", func(ctx context.Context) error {
		if err := the.hub.Get(ctx, source, &object); err != nil {
			return err
		}
		if object.Status.Artifact == nil || !apimeta.IsStatusConditionTrue(object.Status.Conditions, "Ready") {
			return fmt.Errorf("conditions are %v", object.Status.Conditions)
		}
		return nil
	})
	cfg, err := the.Hub.Config()
	if err != nil {
		t.Fatal(err)
	}
	artifacts, _, _ := strings.Cut(strings.TrimPrefix(object.Status.Artifact.URL, "http://"), "/")
	for what, url := range map[string]string{
		"the API server":                    cfg.Host + "/api",
		"the API server, by another form":   strings.Replace(cfg.Host, "127.0.0.1", "[::ffff:127.0.0.1]", 1) + "/api",
		"what serves artifacts":             "http://" + artifacts + "/x",
		"what serves artifacts, by its own": "http://" + strings.Replace(artifacts, "127.0.0.1", "127.1.2.3", 1) + "/x",
	} {
		t.Run(what, func(t *testing.T) {
			namespace := the.follow(t, url, "", "")
			if message := the.refused(t, "GitRepository", namespace, "AddressNotAllowed"); !strings.Contains(message, "leads to the control plane itself") {
				t.Errorf("the message is %q", message)
			}
		})
	}
}
