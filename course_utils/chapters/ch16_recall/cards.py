"""Questions of an interview, in Chinese, to be answered aloud or in a few typed sentences."""

from course_utils.recall.card import card
from course_utils.recall.chosen import Sentences
from course_utils.recall.deck import ALOUD


def _say(id, rows, question, answer, points):
    return card(f"say-{id}", ALOUD, "", rows, question, Sentences(answer, points), "")


CARDS = [
    _say(
        "formula", "002-64 002-78 002-87 002-93",
        "请写出注意力的公式，并说明它在做什么。",
        "Attention(Q, K, V) = softmax(QKᵀ / √d_k) V。每个查询和所有的键做点积，"
        "经过缩放和 softmax "
        "得到一组和为 1 的权重，再用这组权重对值求加权和。因此任意两个位置之间只隔一步，"
        "可以直接交换信息。",
        {"softmax": "softmax",
         "the scale": r"√|sqrt|根号|缩放|scal",
         "the weighted sum of values": r"加权|weighted|average"},
    ),
    _say(
        "scale", "002-73 002-87",
        "为什么要除以 √d_k？",
        "如果 q 和 k 的各个分量相互独立、均值为 0、方差为 1，那么点积的方差就是 d_k。"
        "不缩放的话，分数之间差距太大，"
        "softmax 几乎变成 one-hot，梯度接近 0。除以 √d_k 以后，分数的标准差回到 1 左右。",
        {"the variance (or spread) of a dot product": r"方差|标准差|varian|deviation|spread",
         "the softmax": "softmax",
         "its gradient": r"梯度|gradient"},
    ),
    _say(
        "roles", "002-87 C-80",
        "Q、K、V 分别是什么？",
        "查询表示当前位置想找什么，键是每个位置拿出来供比较的内容，值是真正被取走的内容。"
        "查询和键决定权重，值按权重求和。键是内容而不是位置：把键和值成对地打乱，输出不变。",
        {"the query": r"查询|query|\bQ\b",
         "the key, to be compared": r"键|key|\bK\b",
         "the value, and the sum": r"(值|value|\bV\b)"},
    ),
    _say(
        "heads", "002-65 002-79 002-88 002-94",
        "多头注意力有什么好处？",
        "一个头对每个词只给出一行权重；多个头在各自的子空间里各给一行，"
        "可以同时关注几种不同的关系，比如主语和宾语。"
        "各个头平分 d_model，拼接以后再做一次线性变换，所以参数量和单头一样。"
        "不过并没有什么强迫各个头学得不同，训练好的模型里常有冗余的头。",
        {"several relations at once": r"不同|多种|几种|同时|different|several",
         "the subspaces or the split of d_model": r"子空间|平分|分成|投影|subspace|split|project",
         "what comes after: concatenation, a linear map": r"拼接|线性|concat|linear"},
    ),
    _say(
        "positions", "002-80 002-89",
        "为什么需要位置编码？有哪些做法？",
        "没有掩码的自注意力是排列等变的：打乱词序，输出只是跟着打乱，所以模型看不出顺序。"
        "常见的做法有正弦余弦编码、可学习的位置向量，以及旋转位置编码 RoPE。",
        {"without it order is not seen": r"顺序|词序|等变|order|equivarian",
         "sines and cosines": r"正弦|sin",
         "a second kind": r"学习|旋转|learn|rotary|RoPE|ALiBi"},
    ),
    _say(
        "residual", "002-66 002-95 002-135",
        "残差连接起什么作用？",
        "它给每个子层加一条捷径：y = x + F(x)。捷径的导数是 1，梯度容易传到底层，"
        "从而缓解梯度消失；"
        "多余的层也容易学成“什么都不做”，从而缓解退化问题。但它不能阻止数值逐层变大，"
        "这要靠层归一化。",
        {"the shortcut": r"捷径|直接路径|恒等|x ?\+|shortcut|identity",
         "the gradient": r"梯度|gradient",
         "degradation, or layers that do nothing": r"退化|什么都不做|恒等映射|degrad|nothing"},
    ),
    _say(
        "layernorm", "002-125",
        "层归一化归一的是什么？为什么不用 BatchNorm？",
        "LayerNorm 对每个 token 自己的特征减去均值、除以标准差，再乘 γ 加 β。"
        "它不看同一批里的其他句子，"
        "也不看其他位置，所以不受批大小、句长和填充的影响。BatchNorm 的统计量跨整批样本，"
        "批量较小或者句长不一时就不稳定。",
        {"each token, over its features": r"特征|feature",
         "mean and deviation": r"均值|mean",
         "BatchNorm depends on the batch": r"批|batch"},
    ),
    _say(
        "norm-place", "002-66 002-95 002-135",
        "pre-norm 和 post-norm 有什么区别？",
        "post-norm 是原论文的写法，先相加再归一化：LayerNorm(x + F(x))。"
        "pre-norm 是 x + F(LayerNorm(x))，"
        "最后还要再加一个 LayerNorm。pre-norm 的主干上没有归一化，恒等路径畅通，"
        "层数多时更容易训练；"
        "post-norm 通常需要预热学习率（六层的原始模型就用了），层数越多越难训练。",
        {"post-norm: sum, then norm": r"先相加|相加之后|LayerNorm\(x ?\+|after the sum|sum first",
         "pre-norm: the norm before the sub-layer": r"F\(LayerNorm|之前|先归一化|before|F\(LN",
         "which one is easier when deep": r"更容易|更稳定|层数|easier|stabl|deep"},
    ),
    _say(
        "ffn", "002-89",
        "前馈网络起什么作用？",
        "它在每个位置上独立地做同一件事：先把维度扩到约 4 倍，经过激活函数，再降回来。"
        "注意力负责在位置之间搬运信息，"
        "前馈网络负责加工每个位置上的内容。没有激活函数，两层就等于一次线性变换。",
        {"each position on its own": r"每个位置|独立|逐位置|each position|position-?wise",
         "the activation": r"激活|非线性|ReLU|GELU|activation|non-?linear"},
    ),
    _say(
        "modules", "002-81 002-82 002-86 002-100 002-102",
        "按顺序说出编码器块和解码器块里的模块。",
        "编码器块：多头自注意力，相加与归一化，前馈网络，相加与归一化。"
        "解码器块的自注意力带因果掩码，"
        "后面多一个交叉注意力，所以一共有三次相加与归一化。"
        "词嵌入和位置编码只在整个栈的最下面出现一次。",
        {"self-attention": r"自注意力|self-?attention",
         "cross-attention": r"交叉注意力|cross-?attention",
         "the feed-forward network": r"前馈|FFN|feed-?forward",
         "the causal mask": r"掩码|mask"},
    ),
    _say(
        "encoder", "002-99 002-109 002-110",
        "用一两句话说明编码器做什么。",
        "编码器用不带因果掩码的自注意力读完整个源句，给每个词一个融合了全句上下文的向量。"
        "它只遮住填充，"
        "而且每个句子只运行一次。",
        {"the whole sentence": r"整个|全局|全句|两边|whole|global",
         "a vector in context for each word": r"上下文|向量|表示|context|vector|represent"},
    ),
    _say(
        "decoder", "002-90 002-99 002-109 002-110 002-113",
        "用一两句话说明解码器做什么。",
        "解码器用带因果掩码的自注意力看已生成的词，用交叉注意力查询编码器的输出，"
        "然后预测下一个词。"
        "训练时所有位置一次算完，生成时一个词一个词地写。",
        {"the words so far, masked": r"掩码|已经|已生成|mask|so far",
         "cross-attention to the source": r"交叉注意力|编码器|cross|source|encoder",
         "the next word": r"下一个|预测|next|predict"},
    ),
    _say(
        "why-it-works", "002-103 002-111 002-113",
        "编码器-解码器结构为什么有效？靠什么避免信息泄露？",
        "编码器负责理解输入，解码器负责在输入的条件下生成，交叉注意力把两边对齐。"
        "避免信息泄露靠的不是分工，而是因果掩码和右移一位的目标输入："
        "去掉掩码，前面的输出就会随后面的词改变。",
        {"the two tasks": r"理解|生成|understand|generat",
         "the causal mask": r"因果掩码|掩码|causal|mask"},
    ),
    _say(
        "causal-mask", "002-96 002-82 002-106",
        "因果掩码起什么作用？什么时候真正需要它？",
        "它让每个位置只能看到自己和之前的词，于是 P(y | x) 分解成各个 P(y_t | y_<t, x) 的乘积。"
        "训练时整句目标一次输入，没有掩码就会偷看答案。"
        "逐词生成时，如果用 KV 缓存，后面的词还不存在，没有什么需要遮挡；"
        "如果每一步重算整个前缀，就仍然要用掩码。",
        {"only what came before": r"之前|前面|过去|before|past|earlier",
         "needed in training": r"训练|training"},
    ),
    _say(
        "cross-attention", "002-90 002-103 002-104",
        "交叉注意力里的 Q、K、V 从哪里来？",
        "Q 来自解码器，K 和 V 来自编码器的输出。这样每生成一个词都能到源句里找相关的词，"
        "它的注意力矩阵可以看成一种软对齐。",
        {"queries from the decoder": r"解码器|decoder",
         "keys and values from the encoder": r"编码器|encoder"},
    ),
    _say(
        "parallel", "002-67 002-97",
        "和 RNN 相比，Transformer 最大的优势是什么？",
        "训练时一句话的所有位置可以同时计算，不用像 RNN 那样一步等一步，所以更能利用 GPU；"
        "任意两个词之间的路径也只有一步。但生成仍然是逐词进行的。",
        {"in parallel over the positions": r"同时|并行|parallel|at once",
         "in training, not in generation": r"训练|生成|training|generat"},
    ),
    _say(
        "bottleneck", "002-68 002-83 002-91 002-97",
        "Transformer 最大的瓶颈是什么？怎样缓解？",
        "每个词都要和每个词比较，时间是 O(n²d)，保存注意力矩阵还要 O(n²) 的内存。"
        "不过 n 小于大约 6d 时，线性层更贵。"
        "长序列可以用窗口之类的稀疏注意力，或者低秩、核方法的近似；"
        "FlashAttention 不减少乘法，但不保存整个注意力矩阵，减少显存读写，既省内存又更快。",
        {"the square of the length": r"n²|n\^2|n\*\*2|平方|二次|quadratic|square",
         "a remedy": r"稀疏|窗口|低秩|核方法|近似|检索|sparse|window|low.?rank|kernel|Flash"},
    ),
    _say(
        "cache", "002-83 002-91",
        "KV 缓存省了什么？没有省什么？",
        "生成时把以前各个位置的 K 和 V 留下来，每一步只算新词的，省掉重复计算。"
        "但新词还是要和前面所有的键比较，"
        "分数的总数也有 n(n + 1)/2 个，而且缓存本身占内存。",
        {"repeated work is saved": r"重复|以前|留下|again|repeated|recomput",
         "still a score for every earlier key": r"仍|还是|平方|n²|n\(n|所有的键|still|quadratic"},
    ),
    _say(
        "three-modes", "002-85 002-92",
        "Encoder-only、Decoder-only 和 Encoder-Decoder 有什么区别？",
        "Encoder-only（如 BERT）两边都看，预测被遮住的词，适合分类和检索。"
        "Decoder-only（如 GPT）只看左边，"
        "预测下一个词，适合续写和对话。"
        "Encoder-Decoder（如 T5 和最初的 Transformer）先读源序列再写目标，适合翻译和摘要。",
        {"BERT": "BERT", "GPT": "GPT", "the translator, or T5": r"T5|翻译|translat"},
    ),
    _say(
        "view", "002-73",
        "分头时为什么先 .view 再 .transpose？",
        "线性层的输出里，一个 token 的特征挨在一起：.view(B, T, h, d_k) 只切特征这一维，"
        "再用 transpose(1, 2) 把头移到位置前面。如果直接 .view(B, h, T, d_k)，形状对了，"
        "内容却把不同的位置混在一起，而且不会报错。",
        {"the features of a token are cut": r"特征|切|feature|cut|split",
         "a view alone mixes positions": r"混|错|不同的位置|mix|wrong|other position"},
    ),
    _say(
        "teacher-forcing", "002-85",
        "什么是教师强制？它和生成有什么不同？",
        "训练时解码器读的是正确的目标词，而不是自己的预测，所以所有位置可以一次算完。"
        "生成时没有正确答案，"
        "只能读自己已生成的词，前面一步错了，后面会受影响。",
        {"the right words are read in training": r"正确|真实|true|right|gold",
         "its own words in generation": r"自己|own"},
    ),
    _say(
        "sizes", "002-84",
        "base 模型有多大？参数主要在哪里？",
        "d_model = 512，8 个头，d_ff = 2048，编码器和解码器各 6 层，"
        "词表 37000 时大约六千多万个参数。"
        "编码器的一层里，前馈网络的参数约是注意力的两倍；全部参数将近三分之一在词嵌入里。",
        {"the width, 512": "512", "8 heads": r"8|八", "6 layers each": r"6|六"},
    ),
    _say(
        "nan", "002-74 C-71",
        "训练中出现 NaN，先查什么？",
        "先找到第一个出现 NaN 的地方：有没有一行全被掩码，有没有半精度溢出，有没有除以 0。"
        "然后看学习率、预热和梯度裁剪。换成 AdamW 不会让 NaN 消失。",
        {"rows with nothing visible, overflow, or a division by 0":
             r"掩码|溢出|除以 ?0|mask|overflow|division|divid",
         "the learning rate, or clipping": r"学习率|裁剪|预热|learning rate|clip|warm"},
    ),
    _say(
        "lora", "002-43 002-45",
        "LoRA 为什么省资源？哪里没有省？",
        "冻结原来的权重 W，只训练两个低秩矩阵，用 W + BA 代替 W；"
        "可训练参数只有 r(n + m) 个，梯度和 Adam 的状态也跟着变少。"
        "但前向和反向传播仍要穿过整个模型，只省下冻结权重自己的梯度，每一步的计算量最多少三分之一。"
        "合并以后，推理没有额外开销。",
        {"a frozen weight, low-rank matrices": r"冻结|低秩|BA|AB|frozen|freez|low.?rank|rank",
         "what it does not save: the backward pass": r"反向传播|整个模型|backward|whole model"},
    ),
]  # fmt: skip
