CREATE TABLE recruiting_token_store (layout int PRIMARY KEY);
CREATE TABLE recruiting_token_set (
id int PRIMARY KEY, name text NOT NULL UNIQUE, base_url text NOT NULL, head int NOT NULL,
lost boolean NOT NULL, moved_to text, withdrawn boolean NOT NULL,
claim text, claim_at float8, claim_until float8, claim_ended boolean NOT NULL);
CREATE TABLE recruiting_token_pair (
id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
set_id int NOT NULL REFERENCES recruiting_token_set (id), generation int NOT NULL, attempt text NOT NULL,
pair text NOT NULL, saved_at float8 NOT NULL, imported boolean NOT NULL, was_head boolean NOT NULL, UNIQUE (set_id, generation, attempt));
CREATE TABLE recruiting_token_attempt (
id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, attempt text NOT NULL, set_name text NOT NULL,
generation int NOT NULL, at float8 NOT NULL, outcome text NOT NULL, latency_ms int, replica text NOT NULL);
CREATE TABLE recruiting_token_ring (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL);
CREATE TABLE recruiting_token_fingerprint (
ring_id int NOT NULL REFERENCES recruiting_token_ring (id), fingerprint text NOT NULL,
generation int NOT NULL, PRIMARY KEY (ring_id, fingerprint));
CREATE TABLE recruiting_page_budget (caller text PRIMARY KEY, full_at float8 NOT NULL);
INSERT INTO recruiting_token_store (layout) VALUES (1);
INSERT INTO recruiting_token_set (id, name, base_url, head, lost, moved_to, withdrawn, claim, claim_at, claim_until, claim_ended) VALUES (1, '50fd82be-b729-4b33-9fa5-8ed0e161258d', 'https://recruiting.test', 3, false, NULL, false, NULL, NULL, NULL, false);
INSERT INTO recruiting_token_set (id, name, base_url, head, lost, moved_to, withdrawn, claim, claim_at, claim_until, claim_ended) VALUES (2, '2fe106ba-7995-41bf-af36-cb20f1503d04', 'https://recruiting.test', 7, false, NULL, false, 'c1', 1795527007936.772, 1795527157936.772, true);
INSERT INTO recruiting_token_pair (id, set_id, generation, attempt, pair, saved_at, imported, was_head) OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, 'import', '', 1795527004251.6, true, true);
INSERT INTO recruiting_token_pair (id, set_id, generation, attempt, pair, saved_at, imported, was_head) OVERRIDING SYSTEM VALUE VALUES (2, 1, 2, 'a1', 'aes-256-gcm:223c2cbf:aCED6UCrnmXGK8AX:PDeyKfvA06O3LzZDonn/TQ==:GxWtA615ULLiZ697vA+rb2j0bj4U6AzrTCrSn/wvOfpzDL1DSaBTi1fiTBB6h5h57RxCofN5LAO9dQrjkv9rcBTJzWd5MeM2ntng0NqitgTKyWAJj7zdT/lAFXgeQp4x7Ud93tyio3KixEMh4im9DYaPcZ8Z3vBqMg==', 1795527004833.147, false, true);
INSERT INTO recruiting_token_pair (id, set_id, generation, attempt, pair, saved_at, imported, was_head) OVERRIDING SYSTEM VALUE VALUES (3, 1, 3, 'a3', 'aes-256-gcm:223c2cbf:+cJ+VkGAz9bjelCn:isuh195XK7NBNPS4zN3m2g==:WZmi+SL9QReUhgDsFy3bp93pMC88XMpa3YT4Ovw5x1IyVwzlL/wc8W4beRfMzjJvxYfWxjRI1LxqlhLgoXGus7laIwvzfDEjdZCLQBXe0ANSp+hru2xLvTW9oK8FAq4mK4DYXg5xL2JqGAUmETnUNYHD3SFft2R61A==', 1795527005857.339, false, true);
INSERT INTO recruiting_token_pair (id, set_id, generation, attempt, pair, saved_at, imported, was_head) OVERRIDING SYSTEM VALUE VALUES (4, 1, 3, 'a4', 'aes-256-gcm:223c2cbf:1Igk5W0ilIOVEmW1:DBZY5PVuCOf5eTD/Gdy7aw==:SHjVbe1t5o9ewn5gRMFSrOOCdoc2MuA7UrK44dEgx5PdjZcFopuTBp+LexVACHqV46e3AHghLEQjOkq9GBAMdyIrF0f4kLbzncSUpm4gbs8fISRZrJfBUNEybGPgY1LlgEsGFqMsJH+Y9jicYCcF0lQLXigif1i59oVjNsUo2T0Ex8k=', 1795527006319.147, false, false);
INSERT INTO recruiting_token_pair (id, set_id, generation, attempt, pair, saved_at, imported, was_head) OVERRIDING SYSTEM VALUE VALUES (5, 2, 4, 'import', '', 1795527006732.804, true, true);
INSERT INTO recruiting_token_pair (id, set_id, generation, attempt, pair, saved_at, imported, was_head) OVERRIDING SYSTEM VALUE VALUES (6, 2, 5, 'b4', '', 1795527007171.428, false, true);
INSERT INTO recruiting_token_pair (id, set_id, generation, attempt, pair, saved_at, imported, was_head) OVERRIDING SYSTEM VALUE VALUES (7, 2, 6, 'b5', 'aes-256-gcm:223c2cbf:VhekRf/GPVf1t7yC:kWaoSu+eqU+u86PnELOPsw==:3mHdVSBRTP68p4TkrZqntmshYLVD3p6RIfmDH2aNv5oSe0UXYO2Z8sS8IhOv5cdbY9iV3e0hbPFY1kMD/2VKpNS7ikQXijRCDeAF9yCWqUtKBy3i4hb9FPk8i97N9IxKObIfVvwt1RAknYLLmiUk48CFe3xCC+VHyA==', 1795527007310.57, false, true);
INSERT INTO recruiting_token_pair (id, set_id, generation, attempt, pair, saved_at, imported, was_head) OVERRIDING SYSTEM VALUE VALUES (8, 2, 7, 'b6', 'aes-256-gcm:223c2cbf:wV283lqmb7GjbZeV:F9T2tqKTWK+uqm9VfR3rtA==:9uanLFrGf5DDQTUmVA6VtM2CCuV7q8SxubxgrzpJ8b5/m/AEXzRRGRfq1X9mzvLeWzEZH2CTjvo5mveWIcAwXls9fLGl3/k2K+FMH3+jMzBmvVeAkxzlf6N9emPD33ElJbSEAAzSHyPOYujrGXhl3EIBSIoOIsKivw==', 1795527007741.061, false, true);
INSERT INTO recruiting_token_attempt (id, attempt, set_name, generation, at, outcome, latency_ms, replica) OVERRIDING SYSTEM VALUE VALUES (1, '50fd82be-b729-4b33-9fa5-8ed0e161258d', '50fd82be-b729-4b33-9fa5-8ed0e161258d', 1, 1795527004251.6, 'imported', NULL, 'old/1');
INSERT INTO recruiting_token_attempt (id, attempt, set_name, generation, at, outcome, latency_ms, replica) OVERRIDING SYSTEM VALUE VALUES (2, 'a1', '50fd82be-b729-4b33-9fa5-8ed0e161258d', 1, 1795527004691.294, 'rotated', 3, 'old/1');
INSERT INTO recruiting_token_attempt (id, attempt, set_name, generation, at, outcome, latency_ms, replica) OVERRIDING SYSTEM VALUE VALUES (3, 'a2', '50fd82be-b729-4b33-9fa5-8ed0e161258d', 2, 1795527005300.566, 'early', 5, 'old/1');
INSERT INTO recruiting_token_attempt (id, attempt, set_name, generation, at, outcome, latency_ms, replica) OVERRIDING SYSTEM VALUE VALUES (4, 'a3', '50fd82be-b729-4b33-9fa5-8ed0e161258d', 2, 1795527005734.639, 'rotated', 3, 'old/1');
INSERT INTO recruiting_token_attempt (id, attempt, set_name, generation, at, outcome, latency_ms, replica) OVERRIDING SYSTEM VALUE VALUES (5, '2fe106ba-7995-41bf-af36-cb20f1503d04', '2fe106ba-7995-41bf-af36-cb20f1503d04', 4, 1795527006732.804, 'imported', NULL, 'old/1');
INSERT INTO recruiting_token_attempt (id, attempt, set_name, generation, at, outcome, latency_ms, replica) OVERRIDING SYSTEM VALUE VALUES (6, 'b4', '2fe106ba-7995-41bf-af36-cb20f1503d04', 4, 1795527006996.63, 'rotated', 3, 'old/1');
INSERT INTO recruiting_token_attempt (id, attempt, set_name, generation, at, outcome, latency_ms, replica) OVERRIDING SYSTEM VALUE VALUES (7, 'b5', '2fe106ba-7995-41bf-af36-cb20f1503d04', 5, 1795527007310.57, 'rotated', 3, 'old/1');
INSERT INTO recruiting_token_attempt (id, attempt, set_name, generation, at, outcome, latency_ms, replica) OVERRIDING SYSTEM VALUE VALUES (8, 'b6', '2fe106ba-7995-41bf-af36-cb20f1503d04', 6, 1795527007592.615, 'rotated', 3, 'old/1');
INSERT INTO recruiting_token_attempt (id, attempt, set_name, generation, at, outcome, latency_ms, replica) OVERRIDING SYSTEM VALUE VALUES (9, 'c1', '2fe106ba-7995-41bf-af36-cb20f1503d04', 7, 1795527007936.772, 'uncertain', 9, 'old/1');
INSERT INTO recruiting_token_ring (id, key) OVERRIDING SYSTEM VALUE VALUES (1, 'aes-256-gcm:223c2cbf:Xw9sFQD/01uNdBL4:+e+qS3jN7s8kB1x/NLVADw==:odm1lmVgnZlVS4YjYIuJyCChNroYXvdH7IpY7ywdn0qb+Dv+Knb66nC0EFI=');
INSERT INTO recruiting_token_fingerprint (ring_id, fingerprint, generation) VALUES (1, '32a340de7df0caef8cc5e0031449d4d9287bf22d5534a9338fa1ff5988ca41f9', 2);
INSERT INTO recruiting_token_fingerprint (ring_id, fingerprint, generation) VALUES (1, '435279e86433a61c63107b63c9867268037c1d3123061ebd044a49bca0e9bc4c', 5);
INSERT INTO recruiting_token_fingerprint (ring_id, fingerprint, generation) VALUES (1, '55b405e608186a5d7cdbebe971dac02703d0aa10a9fd73910c129db366dc0783', 3);
INSERT INTO recruiting_token_fingerprint (ring_id, fingerprint, generation) VALUES (1, '83761d3bed2563f134768caebfbffb95a82545b63225918a0ffca2128e0e0c93', 3);
INSERT INTO recruiting_token_fingerprint (ring_id, fingerprint, generation) VALUES (1, 'bb75f5e3cbbb529ac9840f8ce346566e544701502b75710e101ba42e2a00be7d', 1);
INSERT INTO recruiting_token_fingerprint (ring_id, fingerprint, generation) VALUES (1, 'c8078738cd280f49eb9d99973904f286ce849658101f2ce6ed3f15f1936ace12', 4);
INSERT INTO recruiting_token_fingerprint (ring_id, fingerprint, generation) VALUES (1, 'd46758687c02d74a8edb4fd772c0839276d08f625cfc8c094d07241f603a7cdc', 6);
INSERT INTO recruiting_token_fingerprint (ring_id, fingerprint, generation) VALUES (1, 'd76889481666140af883c439e95c20267c0b93bd35a57e107e95a400b2cc30db', 7);
SELECT setval(pg_get_serial_sequence('recruiting_token_pair', 'id'), 8);
SELECT setval(pg_get_serial_sequence('recruiting_token_attempt', 'id'), 9);
SELECT setval(pg_get_serial_sequence('recruiting_token_ring', 'id'), 1);
