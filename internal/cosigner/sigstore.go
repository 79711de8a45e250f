package cosigner

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"time"

	ct "github.com/google/certificate-transparency-go"
	cttls "github.com/google/certificate-transparency-go/tls"
	"github.com/google/certificate-transparency-go/x509util"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"google.golang.org/protobuf/encoding/protojson"
)

// Sigstore has an authority of certificates, a log of them, and a log of signatures.
type Sigstore struct {
	virtual      *ca.VirtualSigstore
	root, issuer *x509.Certificate
	issuerKey    *ecdsa.PrivateKey
	log          *ecdsa.PrivateKey
}

// NewSigstore returns a new one, which nobody knows.
func NewSigstore() (*Sigstore, error) {
	virtual, err := ca.NewVirtualSigstore()
	if err != nil {
		return nil, err
	}
	s := &Sigstore{virtual: virtual}
	var rootKey *ecdsa.PrivateKey
	if s.root, rootKey, err = ca.GenerateRootCa(); err != nil {
		return nil, err
	}
	if s.issuer, s.issuerKey, err = ca.GenerateFulcioIntermediate(s.root, rootKey); err != nil {
		return nil, err
	}
	s.log, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return s, err
}

// Root returns the trusted root, as trusted_root.json has it, the authority of which ends after some time.
func (s *Sigstore) Root(ends time.Duration) ([]byte, error) {
	from := time.Now().Add(-24 * time.Hour)
	authority := &root.FulcioCertificateAuthority{Root: s.root, Intermediates: []*x509.Certificate{s.issuer}, URI: "https://fulcio.test", ValidityPeriodStart: from, ValidityPeriodEnd: time.Now().Add(ends)}
	logs := map[string]*root.TransparencyLog{}
	for id, log := range s.virtual.RekorLogs() {
		raw, err := hex.DecodeString(id)
		if err != nil {
			return nil, err
		}
		log.ID, log.ValidityPeriodStart, log.ValidityPeriodEnd = raw, from, time.Time{}
		logs[id] = log
	}
	id, err := logID(s.log)
	if err != nil {
		return nil, err
	}
	certificates := map[string]*root.TransparencyLog{hex.EncodeToString(id): {
		BaseURL: "https://ct.test", ID: id, ValidityPeriodStart: from, HashFunc: crypto.SHA256, PublicKey: s.log.Public(), SignatureHashFunc: crypto.SHA256,
	}}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{authority}, certificates, nil, logs)
	if err != nil {
		return nil, err
	}
	return trusted.MarshalJSON()
}

func logID(key *ecdsa.PrivateKey) ([]byte, error) {
	text, err := x509.MarshalPKIXPublicKey(key.Public())
	sum := sha256.Sum256(text)
	return sum[:], err
}

// Identity is who signs: a subject, of whom an issuer says that it is he.
type Identity struct {
	Issuer, Subject string
	// Unlogged has a certificate that the log of certificates does not know.
	Unlogged bool
}

// certificate returns a certificate for an identity, with its key.
func (s *Sigstore) certificate(of Identity) (*x509.Certificate, Key, error) {
	key, err := NewKey()
	if err != nil {
		return nil, key, err
	}
	subject, err := url.Parse(of.Subject)
	if err != nil {
		return nil, key, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), URIs: []*url.URL{subject},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(of.Issuer)}},
	}
	for range 2 { // without the log's word, and with it
		raw, err := x509.CreateCertificate(rand.Reader, template, s.issuer, key.private.Public(), s.issuerKey)
		if err != nil {
			return nil, key, err
		}
		out, err := x509.ParseCertificate(raw)
		if err != nil || of.Unlogged || len(template.ExtraExtensions) > 1 {
			return out, key, err
		}
		word, err := s.logged(out)
		if err != nil {
			return nil, key, err
		}
		template.ExtraExtensions = append(template.ExtraExtensions, word)
	}
	return nil, key, fmt.Errorf("certificate for %s: it has not been made", of.Subject)
}

// logged returns the word of the log of certificates that it has one.
func (s *Sigstore) logged(certificate *x509.Certificate) (pkix.Extension, error) {
	id, err := logID(s.log)
	if err != nil {
		return pkix.Extension{}, err
	}
	word := ct.SignedCertificateTimestamp{SCTVersion: ct.V1, LogID: ct.LogID{KeyID: [32]byte(id)}, Timestamp: uint64(time.Now().UnixMilli())}
	input, err := ct.SerializeSCTSignatureInput(word, ct.LogEntry{Leaf: ct.MerkleTreeLeaf{
		Version: ct.V1, LeafType: ct.TimestampedEntryLeafType,
		TimestampedEntry: &ct.TimestampedEntry{
			Timestamp: word.Timestamp, EntryType: ct.PrecertLogEntryType,
			PrecertEntry: &ct.PreCert{IssuerKeyHash: sha256.Sum256(s.issuer.RawSubjectPublicKeyInfo), TBSCertificate: certificate.RawTBSCertificate},
		},
	}})
	if err != nil {
		return pkix.Extension{}, err
	}
	signed, err := cttls.CreateSignature(*s.log, cttls.SHA256, input)
	if err != nil {
		return pkix.Extension{}, err
	}
	word.Signature = ct.DigitallySigned(signed)
	list, err := x509util.MarshalSCTsIntoSCTList([]*ct.SignedCertificateTimestamp{&word})
	if err != nil {
		return pkix.Extension{}, err
	}
	text, err := cttls.Marshal(*list)
	if err != nil {
		return pkix.Extension{}, err
	}
	value, err := asn1.Marshal(text)
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: value}, err
}

// promised returns what the log of signatures says of an entry: when it took it, and that it did.
func (s *Sigstore) promised(body []byte, index int64) (*protorekor.TransparencyLogEntry, error) {
	id, err := s.virtual.RekorLogID()
	if err != nil {
		return nil, err
	}
	at := time.Now().Unix()
	promise, err := s.virtual.RekorSignPayload(tlog.RekorPayload{Body: base64.StdEncoding.EncodeToString(body), IntegratedTime: at, LogIndex: index, LogID: id})
	if err != nil {
		return nil, err
	}
	raw, err := hex.DecodeString(id)
	return &protorekor.TransparencyLogEntry{
		LogIndex: index, LogId: &protocommon.LogId{KeyId: raw}, IntegratedTime: at, CanonicalizedBody: body,
		InclusionPromise: &protorekor.InclusionPromise{SignedEntryTimestamp: promise},
	}, err
}

// Bundle signs the artifact of a digest for an identity, as cosign 3 keeps it.
func (s *Sigstore) Bundle(by Identity, digest, predicate string) ([]byte, error) {
	certificate, key, err := s.certificate(by)
	if err != nil {
		return nil, err
	}
	statement := Statement(digest, predicate)
	sig, err := key.sign(envelope(statement))
	if err != nil {
		return nil, err
	}
	signed := &dsse.Envelope{PayloadType: statementType, Payload: base64.StdEncoding.EncodeToString(statement), Signatures: []dsse.Signature{{Sig: base64.StdEncoding.EncodeToString(sig)}}}
	made, err := s.virtual.GenerateTlogEntry(certificate, signed, sig, time.Now().Unix(), true)
	if err != nil {
		return nil, err
	}
	entry, err := s.promised(made.TransparencyLogEntry().CanonicalizedBody, 0)
	if err != nil {
		return nil, err
	}
	entry.KindVersion = &protorekor.KindVersion{Kind: "dsse", Version: "0.0.1"}
	entry.InclusionProof = made.TransparencyLogEntry().InclusionProof
	return protojson.Marshal(&protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json",
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content:     &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: certificate.Raw}},
			TlogEntries: []*protorekor.TransparencyLogEntry{entry},
		},
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: statement, PayloadType: statementType, Signatures: []*protodsse.Signature{{Sig: sig}},
		}},
	})
}

// Simple signs the artifact of a digest for an identity, as cosign 2 keeps it.
func (s *Sigstore) Simple(by Identity, digest string) (Simple, error) {
	certificate, key, err := s.certificate(by)
	if err != nil {
		return Simple{}, err
	}
	out, err := key.Simple(digest)
	if err != nil {
		return Simple{}, err
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
	sum := sha256.Sum256(out.Text)
	body, err := json.Marshal(map[string]any{"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": map[string]any{
		"data":      map[string]any{"hash": map[string]string{"algorithm": "sha256", "value": hex.EncodeToString(sum[:])}},
		"signature": map[string]any{"content": out.Annotations["dev.cosignproject.cosign/signature"], "publicKey": map[string]any{"content": []byte(text)}},
	}})
	if err != nil {
		return Simple{}, err
	}
	entry, err := s.promised(body, 7)
	if err != nil {
		return Simple{}, err
	}
	logged, err := json.Marshal(map[string]any{"SignedEntryTimestamp": entry.InclusionPromise.SignedEntryTimestamp, "Payload": map[string]any{
		"body": body, "integratedTime": entry.IntegratedTime, "logIndex": entry.LogIndex, "logID": hex.EncodeToString(entry.LogId.KeyId),
	}})
	out.Annotations["dev.sigstore.cosign/certificate"], out.Annotations["dev.sigstore.cosign/bundle"] = text, string(logged)
	return out, err
}
