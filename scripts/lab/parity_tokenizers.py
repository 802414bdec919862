"""Small tokenizers, trained on a few sentences and put together like those of the families; for make-parity.py.

Each is returned with the special tokens that tokenizer_config.json names.
"""

import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

# As in the tokenizers of Llama 3 and of Qwen, which differ in how they take numbers.
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3_PATTERN = rf"{WORDS}|\p{{N}}{{1,3}}|{REST}"
QWEN_PATTERN = rf"{WORDS}|\p{{N}}|{REST}"

CORPUS = [
    "The keys to the old cabinet are on the table.",
    "The key to the old cabinets is on the table, and nobody knows why.",
    "A small model learns what it can from the text that it is shown.",
    "She said that the weather would be fine, and it was raining the whole day.",
] * 4


def trained(tokenizer, special, size, alphabet):
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def byte_level(special, size=320, normalizer=None, pre_tokenizer=None, options=None):
    tokenizer = Tokenizer(models.BPE(**(options or {})))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return trained(tokenizer, special, size, sorted(pre_tokenizers.ByteLevel.alphabet()))


def gpt2():
    return byte_level(["<|endoftext|>"]), dict(bos_token="<|endoftext|>", eos_token="<|endoftext|>")


def neox():
    tokenizer = byte_level(["<|endoftext|>", "<|padding|>"], normalizer=normalizers.NFC())
    # Pythia's tokenizer has runs of spaces as added tokens, which are not special.
    tokenizer.add_tokens([AddedToken("  ", normalized=True), AddedToken("    ", normalized=True)])
    return tokenizer, dict(bos_token="<|endoftext|>", eos_token="<|endoftext|>")


def split_by(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


def llama3():
    begin = "<|begin_of_text|>"
    tokenizer = byte_level(
        [begin, "<|endoftext|>"], pre_tokenizer=split_by(LLAMA3_PATTERN), options=dict(ignore_merges=True))
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(
            single=f"{begin} $A", pair=f"{begin} $A {begin} $B:1", special_tokens=[(begin, 0)]),
    ])
    return tokenizer, dict(bos_token=begin, eos_token="<|endoftext|>")


def qwen():
    tokenizer = byte_level(["<|endoftext|>"], normalizer=normalizers.NFC(), pre_tokenizer=split_by(QWEN_PATTERN))
    return tokenizer, dict(eos_token="<|endoftext|>")


def smollm():
    pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    return byte_level(["<|endoftext|>"], pre_tokenizer=pre_tokenizer), dict(eos_token="<|endoftext|>")


LLAMA_SPECIAL = ["<unk>", "<s>", "</s>"]


def with_byte_fallback(prepare, special=LLAMA_SPECIAL, begin="<s>"):
    """As SentencePiece models are converted: what has no token becomes bytes."""
    learning = Tokenizer(models.BPE(unk_token="<unk>"))
    prepare(learning)
    learnt = json.loads(trained(learning, special, 70, []).to_str())["model"]
    tokens = special + [f"<0x{byte:02X}>" for byte in range(256)] + [
        token for token in sorted(learnt["vocab"], key=learnt["vocab"].get) if token not in special]
    tokenizer = Tokenizer(models.BPE(
        vocab={token: number for number, token in enumerate(tokens)}, merges=[tuple(pair) for pair in learnt["merges"]],
        unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    prepare(tokenizer)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special])
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(content=" ", left=1)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A", pair=f"{begin} $A {begin} $B:1", special_tokens=[(begin, special.index(begin))])
    return tokenizer, dict(bos_token=begin, eos_token="</s>", unk_token="<unk>")


def fallback():
    def prepare(tokenizer):
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])

    return with_byte_fallback(prepare)


def metaspace():
    def prepare(tokenizer):
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)

    return with_byte_fallback(prepare)


def gemma():
    def prepare(tokenizer):
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous")

    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>"]
    tokenizer, _ = with_byte_fallback(prepare, special, "<bos>")
    # Gemma's tokenizer has runs of newlines and of spaces as added tokens, which are not special.
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in ["\n\n", "\n\n\n", "▁▁"]])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer, dict(
        bos_token="<bos>", eos_token="<eos>", unk_token="<unk>", pad_token="<pad>", tokenizer_class="GemmaTokenizer",
        add_bos_token=True, add_eos_token=False)


def phi3():
    """With a token for the beginning, whatever tokenizer_config.json says: transformers follows tokenizer.json where there is one."""
    tokenizer, special = fallback()
    tokenizer.add_special_tokens([
        AddedToken(token, normalized=False, rstrip=True) for token in ["<|user|>", "<|assistant|>", "<|end|>"]])
    return tokenizer, dict(special, tokenizer_class="LlamaTokenizer", add_bos_token=False, add_eos_token=False)


def stablelm():
    """Without a token for the beginning, whatever tokenizer_config.json says."""
    tokenizer = byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"], pre_tokenizer=split_by(QWEN_PATTERN))
    return tokenizer, dict(
        bos_token="<|endoftext|>", eos_token="<|im_end|>", tokenizer_class="GPT2Tokenizer", add_bos_token=True)
