package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// saysSince waits until a program has logged something since an offset of its log.
func saysSince(t *testing.T, log string, since int64, says string) {
	t.Helper()
	eventually(t, time.Minute, "it logs: "+says, func(context.Context) error {
		text, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		if !strings.Contains(string(text[since:]), says) {
			return errors.New("it has not said so")
		}
		return nil
	})
}

// TestAFolderOfAnAgentWhoseClusterHasLeft starts an agent, whose hub is away, from what it
// kept before its cluster left the fleet: nothing comes back.
func TestAFolderOfAnAgentWhoseClusterHasLeft(t *testing.T) {
	t.Parallel() // it waits for most of its time
	s := the.site(t, fleet.Again(t, "left"))
	eventually(t, time.Minute, "the cluster is ready", the.judged(s.name, metav1.ConditionTrue))
	the.work(t, s.name, "kept", "1", "kept")
	eventually(t, time.Minute, "the member has it", values(s.client, map[string]string{"kept": "1"}))
	the.marked(t, s.name, s.client, "kept", "")
	data := filepath.Join(filepath.Dir(s.agent.Log), "data")
	before := filepath.Join(t.TempDir(), "before")
	if err := s.agent.Stop(); err != nil {
		t.Fatal(err)
	}
	restore(t, data, before)
	begun := time.Now()
	if err := s.agent.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the agent is heard again", func(ctx context.Context) error { // one that counts as lost is not waited for
		lease := &coordinationv1.Lease{}
		if err := the.hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.NamespaceKarmadaCluster, Name: s.name}, lease); err != nil {
			return err
		}
		if at := lease.Spec.RenewTime; at == nil || at.Time.Before(begun) {
			return fmt.Errorf("it was last heard at %s", at)
		}
		return the.judged(s.name, metav1.ConditionTrue)(ctx)
	})
	the.Flotilla(t, "unregister", s.name, "--cluster-kubeconfig", s.member.Kubeconfig, "--karmada-config", the.Hub.Kubeconfig)
	gone := values(s.client, map[string]string{"kept": ""})
	if err := gone(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.agent.Stop(); err != nil {
		t.Fatal(err)
	}

	restore(t, before, data)
	log, err := os.Stat(s.agent.Log)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.agent.Start(); err != nil {
		t.Fatal(err)
	}
	saysSince(t, s.agent.Log, log.Size(), "the cluster was let go of since")
	eventually(t, time.Minute, "the place of the agent is free for the next one", func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		err := s.client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: clusterv1alpha1.AgentLease}, lease)
		if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); err == nil && holder != "" {
			return fmt.Errorf("%s has it", holder)
		}
		return client.IgnoreNotFound(err)
	})
	if err := gone(t.Context()); err != nil {
		t.Errorf("it came back: %v", err)
	}
	if _, err := mark(t.Context(), s.client); err == nil {
		t.Error("the claim came back")
	}
}

// TestAnOlderCopyOfAnAgentsFolder starts an agent, whose hub is away, from what it kept
// some time ago: nothing goes back in its member, and it goes on when the hub is there.
func TestAnOlderCopyOfAnAgentsFolder(t *testing.T) {
	t.Parallel() // it waits for most of its time
	s := the.site(t, fleet.Again(t, "older"))
	eventually(t, time.Minute, "the cluster is ready", the.judged(s.name, metav1.ConditionTrue))
	the.work(t, s.name, "changed", "1", "changed")
	the.work(t, s.name, "moved", "1", "moved")
	eventually(t, time.Minute, "the member has it", values(s.client, map[string]string{"changed": "1", "moved": "1"}))
	the.marked(t, s.name, s.client, "moved", "")

	data := filepath.Join(filepath.Dir(s.agent.Log), "data")
	older := filepath.Join(t.TempDir(), "older")
	if err := s.agent.Stop(); err != nil {
		t.Fatal(err)
	}
	restore(t, data, older)
	if err := s.agent.Start(); err != nil {
		t.Fatal(err)
	}
	the.work(t, s.name, "changed", "2", "changed")
	the.drop(t, s.name, "moved", false)
	latest := map[string]string{"changed": "2", "moved": ""}
	eventually(t, time.Minute, "the member has the changes", values(s.client, latest))
	the.marked(t, s.name, s.client, "changed", "")
	if err := s.agent.Kill(); err != nil {
		t.Fatal(err)
	}

	s.link.Cut()
	latestCopy := filepath.Join(t.TempDir(), "latest")
	restore(t, data, latestCopy)
	restore(t, older, data)
	log, err := os.Stat(s.agent.Log)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.agent.Start(); err != nil {
		t.Fatal(err)
	}
	saysSince(t, s.agent.Log, log.Size(), "older than what the cluster has seen")
	if err := values(s.client, latest)(t.Context()); err != nil {
		t.Errorf("an older state was gone back to: %v", err)
	}
	if err := s.agent.Kill(); err != nil {
		t.Fatal(err)
	}

	restore(t, latestCopy, data)
	if err := s.agent.Start(); err != nil {
		t.Fatal(err)
	}
	spoil(t, s.client, "changed", "2") // it goes on from what it kept last
	if err := s.agent.Kill(); err != nil {
		t.Fatal(err)
	}

	restore(t, older, data)
	if err := s.agent.Start(); err != nil {
		t.Fatal(err)
	}
	s.link.Mend()
	spoil(t, s.client, "changed", "2")
	if err := values(s.client, latest)(t.Context()); err != nil {
		t.Errorf("an older state was gone back to: %v", err)
	}
	the.work(t, s.name, "changed", "3", "changed")
	eventually(t, time.Minute, "it goes on", values(s.client, map[string]string{"changed": "3", "moved": ""}))
	the.drop(t, s.name, "changed", false)
	eventually(t, time.Minute, "the rest goes", values(s.client, map[string]string{"changed": ""}))
}
