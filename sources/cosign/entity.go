package cosign

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
)

// Annotations of simple signatures that are made with a certificate.
const (
	certificateAnnotation = "dev.sigstore.cosign/certificate"
	entryAnnotation       = "dev.sigstore.cosign/bundle"
	timestampAnnotation   = "dev.sigstore.cosign/rfc3161timestamp"
)

// entry is what a log says of a simple signature.
type entry struct {
	SignedEntryTimestamp []byte
	Payload              struct {
		Body           []byte `json:"body"`
		IntegratedTime int64  `json:"integratedTime"`
		LogIndex       int64  `json:"logIndex"`
		LogID          string `json:"logID"`
	}
}

// entityOf returns a simple signature as a bundle of the first version, which says the same.
func entityOf(text, sig []byte, annotations map[string]string) (*bundle.Bundle, error) {
	unreadable := refused("it has a signature whose certificate, or entry in a log, cannot be read")
	block, _ := pem.Decode([]byte(annotations[certificateAnnotation]))
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, refused("it is signed without a certificate")
	}
	logged, err := entryOf(annotations[entryAnnotation])
	if err != nil {
		return nil, unreadable
	}
	sum := sha256.Sum256(text)
	out := &protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1",
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &protocommon.X509CertificateChain{
				Certificates: []*protocommon.X509Certificate{{RawBytes: block.Bytes}},
			}},
			TlogEntries: logged,
		},
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]}, Signature: sig,
		}},
	}
	if stamp := annotations[timestampAnnotation]; stamp != "" {
		var stamped struct{ SignedRFC3161Timestamp []byte }
		if json.Unmarshal([]byte(stamp), &stamped) != nil {
			return nil, unreadable
		}
		out.VerificationMaterial.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: stamped.SignedRFC3161Timestamp}},
		}
	}
	entity, err := bundle.NewBundle(out)
	if err != nil {
		return nil, unreadable
	}
	return entity, nil
}

// entryOf reads what a log says of a simple signature; nothing for nothing.
func entryOf(annotation string) ([]*protorekor.TransparencyLogEntry, error) {
	if annotation == "" {
		return nil, nil
	}
	var logged entry
	if err := json.Unmarshal([]byte(annotation), &logged); err != nil {
		return nil, err
	}
	id, err := hex.DecodeString(logged.Payload.LogID)
	if err != nil {
		return nil, err
	}
	var kind struct {
		Kind    string `json:"kind"`
		Version string `json:"apiVersion"`
	}
	if err := json.Unmarshal(logged.Payload.Body, &kind); err != nil {
		return nil, err
	}
	return []*protorekor.TransparencyLogEntry{{
		LogIndex: logged.Payload.LogIndex, LogId: &protocommon.LogId{KeyId: id}, IntegratedTime: logged.Payload.IntegratedTime,
		KindVersion:       &protorekor.KindVersion{Kind: kind.Kind, Version: kind.Version},
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: logged.SignedEntryTimestamp},
		CanonicalizedBody: logged.Payload.Body,
	}}, nil
}
