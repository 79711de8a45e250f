package message

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/flotilla-io/flotilla/policies/alerting"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// well are the reasons of Events that end an incident.
var well = []string{meta.ReconciliationSucceededReason, meta.SucceededReason, "NewArtifact"}

// pagerDuty triggers an incident of an object by an error, and resolves it by a success. Of other Events it says nothing.
func pagerDuty(p Provider, e alerting.Event, r *Request) (any, error) {
	key, err := p.integration()
	if err != nil {
		return nil, err
	}
	if r.URL.Path == "" || r.URL.Path == "/" {
		r.URL = r.URL.JoinPath("v2/enqueue")
	}
	o := e.InvolvedObject
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", o.Kind, o.Namespace, o.Name, o.UID))
	body := map[string]any{"routing_key": key, "dedup_key": hex.EncodeToString(sum[:])}
	switch {
	case e.Failed():
		const mostSummary = 1024 // characters
		body["event_action"] = "trigger"
		body["payload"] = map[string]any{
			"summary": excerpt.Runes(e.Name()+": "+excerpt.Line(e.Message), mostSummary), "source": "flotilla " + e.Name(), "severity": "error",
			"timestamp": e.Timestamp.UTC().Format(time.RFC3339), "component": e.ReportingController, "group": o.Kind, "class": e.Reason, "custom_details": e.Metadata,
		}
	case slices.Contains(well, e.Reason):
		body["event_action"] = "resolve"
	default:
		return nil, ErrNothing
	}
	return body, nil
}

// integration returns the key of the integration that takes the Events.
func (p Provider) integration() (string, error) {
	if key := cmp.Or(p.Channel, p.key("token")); key != "" {
		return key, nil
	}
	return "", fmt.Errorf("%w: it needs spec.channel, the key of an integration of the Events API v2, or the key token in its Secret", ErrProvider)
}

// label returns the name of a label as Prometheus takes it.
func label(key string) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, key)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}

// alertmanager sends an alert with the labels that Flux's have.
func alertmanager(p Provider, e alerting.Event, r *Request) (any, error) {
	p.authorize(r)
	labels, annotations := map[string]string{}, map[string]string{"message": e.Message}
	for _, f := range values(e) {
		if f.Key == "summary" {
			annotations["summary"] = f.Value
			continue
		}
		labels[label(f.Key)] = f.Value
	}
	o := e.InvolvedObject
	for key, value := range map[string]string{
		"alertname": "Flux" + o.Kind + e.Reason, "severity": e.Severity, "reason": e.Reason, "kind": o.Kind, "name": o.Name, "namespace": o.Namespace,
		"reportingcontroller": e.ReportingController,
	} {
		labels[key] = value
	}
	return []map[string]any{{"labels": labels, "annotations": annotations, "startsAt": e.Timestamp.UTC().Format(time.RFC3339)}}, nil
}

// grafana makes an annotation of all dashboards, whose text is HTML.
func grafana(p Provider, e alerting.Event, r *Request) (any, error) {
	p.authorize(r)
	o := e.InvolvedObject
	tags := []string{"flux", e.ReportingController, "kind: " + o.Kind, "name: " + o.Name, "namespace: " + o.Namespace, "severity: " + e.Severity, "reason: " + e.Reason}
	for _, f := range values(e) {
		tags = append(tags, html.EscapeString(f.Key+": "+f.Value))
	}
	return map[string]any{"time": e.Timestamp.UnixMilli(), "text": html.EscapeString(e.Name() + "\n" + e.Message), "tags": tags}, nil
}
